import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { TrainerCallback } from "../../contracts/callback.ts";
import type { Session } from "../../contracts/session.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { fakeGuard } from "../../testing/fake-guard.ts";
import { gate, toyEvaluation, toyTraining, type ToyTraining } from "../../testing/toy-training.ts";
import { withSession } from "../loop/session.ts";

const turn = () => new Promise((resolve) => setTimeout(resolve, 2));

/** A training with the guard `variables` of TensorFlow.js, which runs around hooks. */
const guarded = (toy: ToyTraining, callbacks: readonly TrainerCallback[], changes = {}) =>
  toy.options(callbacks, {
    guards: [
      fakeGuard({ name: "variables", around: "hooks", observe: () => `v${toy.weights}` }),
      fakeGuard({ name: "weights", observe: () => `w${toy.weights}` }),
    ],
    ...changes,
  });

/** Trains as our trainers do: the weights change only between `stepBegin` and `stepEnd`. */
const train = (toy: ToyTraining, steps: number, between: () => unknown) => async (session: Session) => {
  await session.begin();
  for (let step = 1; step <= steps; step++) {
    await session.stepBegin();
    toy.step();
    const { stop } = await session.stepEnd();
    if (stop !== null) return stop;
    await session.save();
    await between();
  }
  return null;
};

it("blames a grader that changes the weights as soon as it starts, and measures no more at this step", async () => {
  const toy = toyTraining();
  const evil = toyEvaluation({
    name: "evil",
    graded: true,
    items: 2,
    onGrade: () => void (toy.weights += 1),
  });
  const after = toyEvaluation({ name: "after" });
  const callbacks = [evil, after].map((one) => new PeriodicCallback(one, { schedule: [], atEnd: false }));
  const stop = await withSession(toy.options(callbacks), async (session) => (await session.begin()).stop);
  expect(stop).toBe(
    'guard "weights" saw training disturbed by a grader, timer or promise of callback "evil" at step 0',
  );
  expect((await toy.store.list()).map(({ id, status }) => [id, status])).toEqual([
    ["after", "skipped"],
    ["evil", "complete"],
  ]);
  const [, graded] = await toy.store.list();
  expect(graded!.receipt.at(-1)).toMatchObject({ part: "weights", before: "w0", after: "w1", intact: false });
});

it("blames a grader after which the weights cannot be observed, because it disposed them", async () => {
  const toy = toyTraining();
  let isDisposed = false;
  const observe = () => {
    if (isDisposed) throw new Error("Tensor is disposed.");
    return "w";
  };
  const evil = toyEvaluation({ name: "evil", graded: true, onGrade: () => void (isDisposed = true) });
  const callback = new PeriodicCallback(evil, { schedule: [everyPercent(50)] });
  const options = toy.options([callback], { guards: [fakeGuard({ name: "weights", observe })] });
  const stop = await withSession(options, async (session) => (await session.begin()).stop);
  expect(stop).toContain('of callback "evil" at step 0');
});

it("blames the only measurement's grader at the end of its window", async () => {
  const toy = toyTraining();
  const evil = toyEvaluation({ name: "evil", graded: true, onGrade: () => void (toy.weights += 1) });
  const callback = new PeriodicCallback(evil, { schedule: [everyPercent(50)] });
  const stop = await withSession(toy.options([callback]), async (session) => (await session.begin()).stop);
  expect(stop).toContain('of callback "evil" at step 0');
});

it("blames a grader that changes the weights between two steps", async () => {
  const toy = toyTraining();
  const grading = gate();
  const onGrade = async () => {
    await grading.passed;
    toy.weights += 1;
  };
  const graded = toyEvaluation({ name: "evil", graded: true, onGrade });
  const callbacks = [{ id: "a", onStepEnd() {} }, new PeriodicCallback(graded, { schedule: [] })];
  const between = async () => {
    grading.open();
    await turn();
  };
  const stop = await withSession(guarded(toy, callbacks), train(toy, 5, between));
  expect(stop).toContain(
    'guard "variables" saw training disturbed by a grader, timer or promise of callback "evil"',
  );
});

it("blames a hook that was abandoned", async () => {
  const toy = toyTraining();
  const late = gate();
  const evil: TrainerCallback = {
    id: "evil",
    async onTrainBegin() {
      await late.passed;
      toy.weights += 1;
      await new Promise(() => {});
    },
  };
  const between = async () => {
    late.open();
    await turn();
  };
  const options = guarded(toy, [{ id: "a" }, evil], { patienceSeconds: 0.01 });
  expect(await withSession(options, train(toy, 5, between))).toContain('of callback "evil" at step 1');
});

it("warns of a timer that changes the weights between two steps, and names the callbacks", async () => {
  const toy = toyTraining();
  const evil: TrainerCallback = {
    id: "evil",
    onStepEnd: ({ progress }) => void (progress.step === 2 && setTimeout(() => (toy.weights += 1), 0)),
  };
  const callbacks = [evil, { id: "other" }];
  expect(await withSession(guarded(toy, callbacks), train(toy, 5, turn))).toBeNull();
  const warnings = toy.warnings();
  expect(warnings.length).toBe(1);
  expect(warnings[0]).toMatch(
    /^guard "variables": saw a change by a timer or promise of callback "evil" at step 2/,
  );
  expect(warnings[0]).toContain('by a timer or promise of one of "evil", "other", or by the training loop');
});

it("says nothing of a training that changes the weights between stepEnd and the next stepEnd", async () => {
  const toy = toyTraining();
  const callback = new PeriodicCallback(toyEvaluation({ graded: true }), { schedule: [everyPercent(20)] });
  await withSession(guarded(toy, [callback]), async (session) => {
    for (let step = 1; step <= 10; step++) {
      toy.step();
      await session.stepEnd();
      await turn();
    }
  });
  await withSession(guarded(toy, [callback], { phase: "again" }), train(toy, 10, turn));
  expect(toy.warnings()).toEqual([]);
  const snapshots = await toy.store.list();
  expect(snapshots.every(({ receipt }) => receipt.every(({ intact }) => intact === true))).toBe(true);
});

it.each(["begin", "train", "snapshot"] as const)(
  "blames a logger that changes the weights in %s",
  async (call) => {
    const toy = toyTraining();
    const evil = { name: "evil", [call]: () => void (toy.weights += 1) };
    const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(20)] });
    const loggers = [toy.logger, evil];
    const stop = await withSession(guarded(toy, [callback], { loggers }), async (session) => {
      await session.begin();
      for (let step = 1; step <= 5; step++) {
        await session.stepBegin();
        toy.step();
        const control = await session.stepEnd({ metrics: { loss: 1 } });
        if (control.stop !== null) return control.stop;
      }
      return null;
    });
    expect(stop).toMatch(/^guard "variables" saw training disturbed by logger "evil" at step [01]$/);
    const blamed = (await toy.store.list()).find(({ id }) => id === "loggers");
    expect(blamed).toMatchObject({ status: "failed", receipt: [{ part: "variables", intact: false }] });
  },
);
