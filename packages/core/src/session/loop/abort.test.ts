import fc from "fast-check";
import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { TrainerCallback, Session, SessionOptions, SessionState } from "@periodic-eval/contracts";
import { everyPercent, everySteps } from "../../schedule/triggers.ts";
import { memoryStore, type MemoryStore } from "@periodic-eval/testing";
import {
  toyEvaluation,
  toyTraining,
  type ToyTraining,
} from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "./session.ts";

interface Checkpoint {
  readonly state: SessionState;
  readonly weights: number;
}

/** Trains until a stop is requested, saves a checkpoint as a trainer does, and trains a few steps further. */
async function train(toy: ToyTraining, session: Session, further = 0): Promise<Checkpoint> {
  let { stop } = await session.begin();
  for (let more = further; session.progress.step < 10 && (stop === null || more-- > 0);) {
    toy.step();
    ({ stop } = await session.stepEnd());
  }
  const state = JSON.parse(JSON.stringify(await session.save())) as SessionState;
  return { state, weights: toy.weights };
}

const everyOther = (onMeasure: () => void | Promise<void> = () => undefined, id = "toy") =>
  new PeriodicCallback(toyEvaluation({ name: id, onMeasure }), { schedule: [everySteps(2)] });

const statuses = async (store: MemoryStore) =>
  (await store.list()).map(({ id, step, status, crossed }) => `${id} ${step} ${status} ${crossed.join()}`);

/** Aborts the measurement of step 4, on a store that may hold snapshots. */
async function abortedAtStep4(store = memoryStore(), changes: Partial<SessionOptions> = {}) {
  const toy = toyTraining(store);
  const controller = new AbortController();
  const callback = everyOther(() => {
    if (toy.weights === weightsAt4) controller.abort(new Error("pressed ^C"));
  });
  const options = toy.options([callback], { signal: controller.signal, ...changes });
  const checkpoint = await withSession(options, (session) => train(toy, session));
  return { toy, checkpoint };
}

const weightsAt4 = (() => {
  const toy = toyTraining();
  for (let step = 0; step < 4; step++) toy.step();
  return toy.weights;
})();

it("leaves no snapshot of an aborted measurement, and takes it when the run is resumed at that step", async () => {
  const { toy, checkpoint } = await abortedAtStep4();
  expect(await statuses(toy.store)).toEqual(["toy 0 complete start", "toy 2 complete every 2 steps: 2"]);
  expect(toy.warnings()).toEqual([
    'callback "toy": "toy" is not measured at step 4 (aborted: pressed ^C). A resumed run measures it.',
  ]);
  expect(checkpoint.state).toMatchObject({ progress: { step: 4 }, interrupted: { toy: { by: "toy" } } });

  const again = toyTraining(toy.store);
  again.weights = checkpoint.weights;
  const resume = checkpoint.state;
  const { state } = await withSession(again.options([everyOther()], { resume }), (session) =>
    train(again, session),
  );
  expect((await statuses(toy.store)).slice(2)).toEqual([
    "toy 4 complete every 2 steps: 4",
    "toy 6 complete every 2 steps: 6",
    "toy 8 complete every 2 steps: 8",
    "toy 10 complete every 2 steps: 10",
  ]);
  expect((await toy.store.get({ phase: "train", id: "toy", step: 4 }))!.weights).toBe(`w${weightsAt4}`);
  expect(state.interrupted).toBeUndefined();
});

it("keeps the interrupted measurement in the state that an aborted resume saves", async () => {
  const { toy, checkpoint } = await abortedAtStep4();
  const again = toyTraining(toy.store);
  again.weights = checkpoint.weights;
  const options = again.options([everyOther()], { resume: checkpoint.state, signal: AbortSignal.abort() });
  const { state } = await withSession(options, (session) => train(again, session));
  expect(state).toMatchObject({ progress: { step: 4 }, interrupted: checkpoint.state.interrupted });
});

it("does not record rows from before an abort, with one or several samples per item", async () => {
  const toy = toyTraining();
  const controller = new AbortController();
  const evaluation = {
    ...toyEvaluation({ items: 10 }),
    samplesPerItem: 4,
    async measure() {
      controller.abort();
      // 20 of the 40 rows: 4 for each of the first 5 of the 10 items.
      return Array.from({ length: 20 }, (_, i) => ({ id: `q${i % 5}/${i}`, reply: "a", hit: true }));
    },
  };
  const options = toy.options([new PeriodicCallback(evaluation, { schedule: [] })], {
    signal: controller.signal,
  });
  await withSession(options, (session) => train(toy, session));
  expect(await toy.store.list()).toEqual([]);
});

it("records the measurement if the abort comes after its last row", async () => {
  const toy = toyTraining();
  const controller = new AbortController();
  const plain = toyEvaluation();
  const evaluation = {
    ...plain,
    async measure(...given: Parameters<typeof plain.measure>) {
      const rows = await plain.measure(...given);
      controller.abort();
      return rows;
    },
  };
  const callback = new PeriodicCallback(evaluation, { schedule: [] });
  await withSession(toy.options([callback], { signal: controller.signal }), (session) => train(toy, session));
  expect(await statuses(toy.store)).toEqual(["toy 0 complete start"]);
});

it("records a broken receipt of an aborted measurement", async () => {
  const toy = toyTraining();
  const controller = new AbortController();
  const callback = everyOther(() => {
    toy.weights += 1;
    controller.abort();
  });
  const options = toy.options([callback], { signal: controller.signal });
  await withSession(options, (session) => train(toy, session));
  const [snapshot] = await toy.store.list();
  expect(snapshot).toMatchObject({ step: 0, status: "failed", reason: "aborted" });
  expect(snapshot!.receipt.find(({ part }) => part === "weights")).toMatchObject({ intact: false });
});

it("does not adopt a snapshot of a longer training with other weights for an aborted measurement", async () => {
  const longer = toyTraining();
  longer.weights = 5;
  await withSession(longer.options([everyOther()]), (session) => train(longer, session));
  const { toy, checkpoint } = await abortedAtStep4(longer.store);
  const again = toyTraining(toy.store);
  again.weights = checkpoint.weights;
  await withSession(again.options([everyOther()], { resume: checkpoint.state }), (session) =>
    train(again, session),
  );
  expect((await toy.store.get({ phase: "train", id: "toy", step: 4 }))!.weights).toBe(`w${weightsAt4}`);
  expect((await statuses(toy.store)).length).toBe(6);
});

it("adopts a snapshot of a longer training with the same weights for an aborted measurement", async () => {
  const longer = toyTraining();
  await withSession(longer.options([everyOther()]), (session) => train(longer, session));
  const before = await statuses(longer.store);
  const controller = new AbortController();
  const toy = toyTraining(longer.store);
  const options = toy.options([everyOther()], { signal: controller.signal });
  const { state, weights } = await withSession(options, async (session) => {
    await session.begin();
    for (let step = 1; step <= 4; step++) {
      toy.step();
      if (step === 4) controller.abort();
      await session.stepEnd();
    }
    return { state: await session.save(), weights: toy.weights };
  });
  const again = toyTraining(toy.store);
  again.weights = weights;
  let measured = 0;
  const counting = everyOther(() => void measured++);
  await withSession(again.options([counting], { resume: state }), (session) => train(again, session));
  expect(measured).toBe(0);
  expect(toy.store.superseded).toEqual([]);
  expect(await statuses(toy.store)).toEqual(before);
});

it("records an interrupted baseline as skipped if training continues", async () => {
  const toy = toyTraining();
  const controller = new AbortController();
  const options = toy.options([everyOther(() => controller.abort())], { signal: controller.signal });
  const { state, weights } = await withSession(options, (session) => train(toy, session, 1));
  expect(state.progress.step).toBe(1);
  const again = toyTraining(toy.store);
  again.weights = weights;
  await withSession(again.options([everyOther()], { resume: state }), (session) => train(again, session));
  const found = await toy.store.list();
  expect(found[0]).toMatchObject({
    step: 0,
    status: "skipped",
    reason: "aborted; training continued",
    pct: 0,
  });
  expect((await statuses(toy.store)).slice(0, 2)).toEqual([
    "toy 0 skipped start",
    "toy 2 complete every 2 steps: 2",
  ]);
});

it("does not repeat another callback's measurement at the step of the abort if training continues", async () => {
  const toy = toyTraining();
  const controller = new AbortController();
  const cutOff = everyOther(() => {
    if (toy.weights === weightsAt4) controller.abort();
  }, "b");
  const options = toy.options([everyOther(undefined, "a"), cutOff], { signal: controller.signal });
  const { state, weights } = await withSession(options, (session) => train(toy, session, 1));
  const again = toyTraining(toy.store);
  again.weights = weights;
  const callbacks = [everyOther(undefined, "a"), everyOther(undefined, "b")];
  await withSession(again.options(callbacks, { resume: state }), (session) => train(again, session));
  expect((await statuses(toy.store)).slice(4, 8)).toEqual([
    "a 4 complete every 2 steps: 4",
    "b 4 skipped every 2 steps: 4",
    "a 6 complete every 2 steps: 6",
    "b 6 complete every 2 steps: 6",
  ]);
});

it("takes a measurement that was interrupted twice, when the first stepEnd begins the session", async () => {
  const { toy, checkpoint } = await abortedAtStep4();
  const stepTo = async (from: Checkpoint, last: number, signal = new AbortController().signal) => {
    const life = toyTraining(toy.store);
    life.weights = from.weights;
    const options = life.options([everyOther()], { resume: from.state, maxSteps: null, signal });
    return withSession(options, async (session) => {
      while (session.progress.step < last) {
        life.step();
        await session.stepEnd();
      }
      return { state: await session.save(), weights: life.weights };
    });
  };
  const second = await stepTo(checkpoint, 5, AbortSignal.abort());
  expect(second.state).toMatchObject({ progress: { step: 5 }, interrupted: { toy: { by: "toy" } } });
  await stepTo(second, 7);
  expect((await statuses(toy.store)).slice(2)).toEqual([
    "toy 6 complete every 2 steps: 4,every 2 steps: 6",
    "toy 7 complete end",
  ]);
});

it("requests a late and interrupted start again on resume", async () => {
  const toy = toyTraining();
  const only = () => new PeriodicCallback(toyEvaluation(), { schedule: [], atEnd: false });
  const options = toy.options([only()], { maxSteps: null, signal: AbortSignal.abort() });
  const state = await withSession(options, async (session) => {
    toy.step();
    await session.stepEnd();
    return session.save();
  });
  await withSession(
    toy.options([only()], { resume: state }),
    async (session) => void (await session.begin()),
  );
  expect(await statuses(toy.store)).toEqual(["toy 1 complete start"]);
});

it("records an interrupted measurement as skipped at the end if no callback asks for its evaluation", async () => {
  const { toy, checkpoint } = await abortedAtStep4();
  const options = toy.options([], { resume: checkpoint.state });
  await withSession(options, async (session) => void (await session.begin()));
  expect((await statuses(toy.store)).at(-1)).toBe("toy 4 skipped every 2 steps: 4");
});

it("crosses an interrupted end again on resume, without adopting another training's snapshot", async () => {
  const sparse = (onMeasure?: () => void) =>
    new PeriodicCallback(toyEvaluation({ ...(onMeasure && { onMeasure }) }), { schedule: [] });
  const longer = toyTraining();
  longer.weights = 5;
  await withSession(longer.options([sparse()]), (session) => train(longer, session));
  const toy = toyTraining(longer.store);
  const controller = new AbortController();
  const cutOff = sparse(() => {
    if (toy.weights !== 0) controller.abort();
  });
  const session = openSession(toy.options([cutOff], { signal: controller.signal }));
  await train(toy, session);
  await session.end();
  const resume = await session.save();
  await session.close();
  expect(resume.interrupted).toBeUndefined();
  const again = toyTraining(toy.store);
  again.weights = toy.weights;
  await withSession(again.options([sparse()], { resume }), (resumed) => train(again, resumed));
  expect(await statuses(toy.store)).toEqual(["toy 0 complete start", "toy 10 complete end"]);
  expect((await toy.store.list())[1]!.weights).toBe(`w${toy.weights}`);
});

it("keeps planned comparisons and requests without a schedule for the resume", async () => {
  const toy = toyTraining();
  const controller = new AbortController();
  const byHand = (onMeasure: () => void): TrainerCallback => {
    const evaluation = toyEvaluation({ onMeasure });
    return {
      id: "reacting",
      asks: [evaluation],
      onStepEnd({ progress, measure }) {
        if (progress.step === 3) measure({ id: "deep", evaluation, crossed: [], plannedComparisons: 4 });
      },
    };
  };
  const options = toy.options([byHand(() => controller.abort())], { signal: controller.signal });
  const { state, weights } = await withSession(options, (session) => train(toy, session));
  const evaluation = { name: "toy", version: "1" };
  const deep = { by: "reacting", evaluation, on: "model", crossed: [], plannedComparisons: 4 };
  expect(state.interrupted).toEqual({ deep });
  const again = toyTraining(toy.store);
  again.weights = weights;
  const resumed = again.options([byHand(() => undefined)], { resume: state });
  await withSession(resumed, (session) => train(again, session));
  expect(await statuses(toy.store)).toEqual(["deep 3 complete "]);
});

it("keeps all thresholds if a hook requests the measurement again after the abort", async () => {
  const toy = toyTraining();
  const evaluation = toyEvaluation();
  const requesting: TrainerCallback = {
    id: "again",
    onSave: ({ measure }) => measure({ id: "toy", evaluation, crossed: [] }),
  };
  const callbacks = [new PeriodicCallback(evaluation, { schedule: [everySteps(1)] }), requesting];
  const session = openSession(toy.options(callbacks, { maxSteps: null, signal: AbortSignal.abort() }));
  await session.stepEnd({ step: 1 });
  const { interrupted } = await session.save();
  await session.close();
  expect(interrupted!["toy"]!.crossed.map(({ at }) => at)).toEqual([0, 1]);
});

/** Runs from a checkpoint, aborts when the n-th measurement begins, and trains a few steps further. */
async function lives(store: MemoryStore, from: Checkpoint | null, abortAt: number, further = 0) {
  const toy = toyTraining(store);
  toy.weights = from?.weights ?? 0;
  const controller = new AbortController();
  let measured = 0;
  const onMeasure = () => {
    if (++measured === abortAt) controller.abort();
  };
  const callbacks = [
    everyOther(onMeasure, "small"),
    new PeriodicCallback(toyEvaluation({ name: "judged", items: 9, graded: true, onMeasure }), {
      schedule: [everyPercent(20), everySteps(3)],
    }),
  ];
  const resume = from === null ? {} : { resume: from.state };
  const options = toy.options(callbacks, { signal: controller.signal, ...resume });
  const checkpoint = await withSession(options, (session) => train(toy, session, further));
  return { checkpoint, isDone: !controller.signal.aborted };
}

interface Abort {
  readonly at: number;
  readonly further: number;
}

/** Returns the snapshots of a run that is aborted at these measurements and resumed each time. */
async function leftAfter(aborts: readonly Abort[]) {
  const store = memoryStore();
  let from: Checkpoint | null = null;
  let isDone = false;
  for (const { at, further } of [...aborts, { at: -1, further: 0 }]) {
    if (!isDone) ({ checkpoint: from, isDone } = await lives(store, from, at, further));
  }
  expect(store.superseded).toEqual([]);
  const found = await store.list();
  const rows = await Promise.all(found.map((snapshot) => store.rows(snapshot)));
  return found.map((snapshot, i) => ({ ...snapshot, timing: null, rows: rows[i] }));
}

const abortsOf = (mostFurther: number) =>
  fc.array(
    fc.record({ at: fc.integer({ min: 1, max: 8 }), further: fc.integer({ min: 0, max: mostFurther }) }),
    { maxLength: 5 },
  );

it("leaves the same snapshots as the uninterrupted run after any aborts and resumes", async () => {
  const whole = await leftAfter([]);
  await fc.assert(
    fc.asyncProperty(abortsOf(0), async (aborts) => {
      expect(await leftAfter(aborts)).toEqual(whole);
    }),
    { numRuns: 30 },
  );
});

it("leaves a measurement or a skipped snapshot for each threshold if training continues after any aborts", async () => {
  const whole = await leftAfter([]);
  await fc.assert(
    fc.asyncProperty(abortsOf(2), async (aborts) => {
      const found = await leftAfter(aborts);
      const crossingsOf = (records: typeof found) =>
        records.map(({ id, step, crossed }) => [id, step, crossed]);
      expect(crossingsOf(found)).toEqual(crossingsOf(whole));
      for (const [i, record] of found.entries()) {
        const { weights, metrics, rows } = whole[i]!;
        if (record.status === "skipped") expect(record.reason).toBe("aborted; training continued");
        else expect(record).toMatchObject({ weights, metrics, rows });
      }
    }),
    { numRuns: 30 },
  );
});
