// Timers and promises that callbacks left behind change the weights: in a step, between steps, and while others measure.
import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { TrainerCallback } from "../../contracts/callback.ts";
import type { Session } from "../../contracts/session.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { fakeGuard } from "../../testing/fake-guard.ts";
import { toyEvaluation, toyTraining } from "../../testing/toy-training.ts";
import { openSession, withSession } from "../loop/session.ts";

const turn = () => new Promise((resolve) => setTimeout(resolve, 2));

/** A training whose guard of weights notices each write, as that of TensorFlow.js does. */
function watchedTraining() {
  const toy = toyTraining();
  const listeners = new Set<(what: string) => void>();
  const write = () => {
    toy.weights += 1;
    for (const listener of listeners) listener("w assigned");
  };
  const variables = fakeGuard({ name: "variables", around: "hooks", observe: () => `v${toy.weights}` });
  const watch = (onChange: (what: string) => void) => {
    listeners.add(onChange);
    return () => void listeners.delete(onChange);
  };
  const guards = [{ ...variables, watch }, fakeGuard({ name: "weights", observe: () => `w${toy.weights}` })];
  const options = (callbacks: readonly TrainerCallback[], changes = {}) =>
    toy.options(callbacks, { guards, ...changes });
  /** Trains with or without `stepBegin`. Each step waits, and assigns the weights itself. */
  const train = (callsStepBegin: boolean) => async (session: Session) => {
    for (let step = 1; step <= 4; step++) {
      if (callsStepBegin) await session.stepBegin();
      await turn();
      write();
      await turn();
      const { stop } = await session.stepEnd({ metrics: { loss: 1 } });
      if (stop !== null) return stop;
    }
    return null;
  };
  return { toy, guards, listeners, write, options, train };
}

const later: readonly [string, (write: () => void) => void][] = [
  ["a microtask", (write) => void Promise.resolve().then(write)],
  ["a promise that settles later", (write) => void Promise.resolve().then().then().then(write)],
  ["process.nextTick", (write) => process.nextTick(write)],
  ["a timer", (write) => void setTimeout(write, 0)],
];
for (const hook of ["onTrainBegin", "onStepBegin", "onStepEnd", "onLog"] as const)
  for (const callsStepBegin of [true, false])
    it.each(later)(
      `blames the callback whose ${hook} changes weights in %s${callsStepBegin ? "" : ", in a loop that calls only stepEnd"}`,
      async (_, leave) => {
        const { toy, write, options, train } = watchedTraining();
        let calls = 0;
        const evil: TrainerCallback = { id: "evil", [hook]: () => void (calls++ === 0 && leave(write)) };
        const callbacks = [{ id: "other", onStepBegin() {}, onStepEnd() {} }, evil];
        const stop = await withSession(options(callbacks), train(callsStepBegin));
        expect(stop).toMatch(
          /^guard "variables" saw training disturbed by a grader, timer or promise of callback "evil" at/,
        );
        expect(toy.warnings().filter((text) => text.startsWith("guard")).length).toBe(1);
        expect((await toy.store.list()).map(({ id, status }) => [id, status])).toEqual([["evil", "failed"]]);
      },
    );

it("says nothing of a training that changes its weights itself, and ends the watching", async () => {
  const { toy, listeners, options, train } = watchedTraining();
  const callback = new PeriodicCallback(toyEvaluation({ graded: true }), { schedule: [everyPercent(20)] });
  const idle = { id: "idle", async onStepEnd() {}, async onStepBegin() {} };
  expect(await withSession(options([callback, idle]), train(true))).toBeNull();
  expect(toy.warnings()).toEqual([]);
  expect(listeners.size).toBe(0);
});

it("blames the callback whose timer changes weights while the session closes its store", async () => {
  const { toy, write, options, train } = watchedTraining();
  const evil: TrainerCallback = { id: "evil", onTrainEnd: () => void setTimeout(write, 5) };
  const close = () => new Promise<void>((resolve) => setTimeout(resolve, 20));
  await withSession(options([evil], { run: { ...toy.store, close } }), train(true));
  expect(toy.warnings().join("\n")).toContain('callback "evil" at step 4');
});

it("blames the callback whose timer changes weights while another is measured, and marks the measurement", async () => {
  const { toy, write, options } = watchedTraining();
  const evil: TrainerCallback = { id: "evil", onTrainBegin: () => void setTimeout(write, 5) };
  const slow = toyEvaluation({ onMeasure: () => new Promise((resolve) => setTimeout(resolve, 20)) });
  const measured = new PeriodicCallback(slow, { schedule: [], id: "measured", atEnd: false });
  const stop = await withSession(options([evil, measured]), async (session) => (await session.begin()).stop);
  expect(stop).toContain('by a grader, timer or promise of callback "evil" at step 0');
  const warnings = toy.warnings().join("\n");
  expect(warnings).toContain('disturbed by callback "evil" during the measurement "measured" at step 0');
  expect(warnings).not.toContain("disturbed by the measurement");
  const measurement = (await toy.store.list()).find(({ id }) => id === "measured");
  expect(measurement?.receipt.find(({ part }) => part === "weights")?.intact).toBe(false);
});

it("blames the callback whose timer changes weights during a hook of another, and not the other", async () => {
  const { toy, write, options, train } = watchedTraining();
  const evil: TrainerCallback = { id: "evil", onTrainBegin: () => void setTimeout(write, 5) };
  const slow = { id: "slow", onTrainBegin: () => new Promise<void>((resolve) => setTimeout(resolve, 20)) };
  const stop = await withSession(options([evil, slow]), train(true));
  expect(stop).toContain('callback "evil" at step 0');
  expect(toy.warnings().join("\n")).not.toContain('"slow"');
});

it("does not blame a hook that changes another setting while a timer of another changes weights", async () => {
  const { toy, guards, write, options, train } = watchedTraining();
  let switchBackend = () => {};
  const backend = {
    ...fakeGuard({ name: "backend", around: "hooks", observe: () => "wasm" }),
    watch(onChange: (what: string) => void) {
      switchBackend = () => onChange("the backend was switched");
      return () => {};
    },
  };
  const evil: TrainerCallback = { id: "evil", onTrainBegin: () => void setTimeout(write, 5) };
  const switching: TrainerCallback = {
    id: "switching",
    async onTrainBegin() {
      switchBackend();
      await new Promise((resolve) => setTimeout(resolve, 20));
      switchBackend();
    },
  };
  await withSession(options([evil, switching], { guards: [...guards, backend] }), train(true));
  const warnings = toy.warnings().join("\n");
  expect(warnings).toContain('callback "evil"');
  expect(warnings).not.toContain('"switching"');
});

it("blames an evaluation whose items change weights later, and a logger whose timer does", async () => {
  for (const by of ["evaluation", "logger"]) {
    const { toy, write, options, train } = watchedTraining();
    const items = () => {
      if (by === "evaluation") setTimeout(write, 0);
      return [{ id: "q0", text: "question 0" }];
    };
    const callback = new PeriodicCallback({ ...toyEvaluation(), items }, { schedule: [], id: "evil" });
    const logger = { name: "evil", train: () => void setTimeout(write, 0) };
    const loggers = by === "logger" ? [toy.logger, logger] : [toy.logger];
    const stop = await withSession(options([callback], { loggers }), train(true));
    const name = by === "logger" ? "logger" : "callback";
    expect(stop).toContain(`by a grader, timer or promise of ${name} "evil" at step`);
  }
});

it("leaves a session alone whose hook trains another model in a session of its own", async () => {
  const outer = watchedTraining();
  const trainsAnother: TrainerCallback = {
    id: "nested",
    async onTrainBegin() {
      const inner = watchedTraining();
      const session = openSession(inner.options([{ id: "inside", onStepEnd() {} }]));
      await session.begin();
      await inner.train(true)(session);
      await session.end();
      await session.close();
      expect(inner.toy.warnings()).toEqual([]);
    },
  };
  expect(await withSession(outer.options([trainsAnother]), outer.train(true))).toBeNull();
  expect(outer.toy.warnings()).toEqual([]);
});
