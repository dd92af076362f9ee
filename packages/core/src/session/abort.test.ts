import fc from "fast-check";
import { expect, test } from "vitest";
import { PeriodicCallback } from "../callback/periodic.ts";
import { everyPercent, everySteps } from "../schedule/triggers.ts";
import { memoryStore, type MemoryStore } from "../testing/memory-store.ts";
import { gate, toyEvaluation, toyTraining, type ToyTraining } from "../testing/toy-training.ts";
import { openSession, withSession } from "./session.ts";
import type { Session, SessionOptions, SessionState } from "./types.ts";

interface Checkpoint {
  readonly state: SessionState;
  readonly weights: number;
}

/** Trains until told to stop, as a trainer does: with a checkpoint where it stops. */
async function train(toy: ToyTraining, session: Session): Promise<Checkpoint> {
  let { stop } = await session.begin();
  while (stop === null && session.progress.step < 10) {
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

/** Aborted in the measurement of step 4, on a store that may hold something. */
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

test("what an abort cuts off leaves no record, and is measured when the run is resumed at that step", async () => {
  const { toy, checkpoint } = await abortedAtStep4();
  expect(await statuses(toy.store)).toEqual(["toy 0 complete start", "toy 2 complete every 2 steps: 2"]);
  expect(toy.warnings()).toEqual([
    'callback "toy": "toy" is not measured at step 4 (aborted: pressed ^C): it is when the run is resumed',
  ]);
  expect(checkpoint.state).toMatchObject({ progress: { step: 4 }, owedSince: { step: 3 } });

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
  expect(state.owedSince).toBeUndefined();
});

test("a state that an aborted resume saves still owes the measurement", async () => {
  const { toy, checkpoint } = await abortedAtStep4();
  const again = toyTraining(toy.store);
  again.weights = checkpoint.weights;
  const options = again.options([everyOther()], { resume: checkpoint.state, signal: AbortSignal.abort() });
  const { state } = await withSession(options, (session) => train(again, session));
  expect(state).toMatchObject({ progress: { step: 4 }, owedSince: { step: 3 } });
});

test("rows that came before an abort are no measurement, with several samples an item neither", async () => {
  const toy = toyTraining();
  const controller = new AbortController();
  const evaluation = {
    ...toyEvaluation({ items: 10 }),
    samplesPerItem: 4,
    async measure() {
      controller.abort();
      // 20 of the 40 rows, 4 for each of the first 5 of the 10 items.
      return Array.from({ length: 20 }, (_, i) => ({ id: `q${i % 5}/${i}`, reply: "a", hit: true }));
    },
  };
  const options = toy.options([new PeriodicCallback(evaluation, { schedule: [] })], {
    signal: controller.signal,
  });
  await withSession(options, (session) => train(toy, session));
  expect(await toy.store.list()).toEqual([]);
});

test("an abort that comes when all rows are there costs no measurement", async () => {
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

test("what a guard saw in a measurement that was aborted is recorded", async () => {
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

test("a record of a longer training with other weights is not taken for the aborted measurement's", async () => {
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

test("aborted at any measurements and resumed, a run leaves what the uninterrupted run leaves", async () => {
  /** Runs from a checkpoint; aborts when a measurement begins for the n-th time. */
  async function lives(store: MemoryStore, from: Checkpoint | null, abortAt: number) {
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
    const checkpoint = await withSession(options, (session) => train(toy, session));
    return { checkpoint, isDone: !controller.signal.aborted };
  }
  async function left(store: MemoryStore): Promise<unknown> {
    const found = await store.list();
    const rows = await Promise.all(found.map((snapshot) => store.rows(snapshot)));
    return found.map((snapshot, i) => ({ ...snapshot, timing: null, rows: rows[i] }));
  }
  const whole = memoryStore();
  await lives(whole, null, -1);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 5 }), async (aborts) => {
      const store = memoryStore();
      let from: Checkpoint | null = null;
      let isDone = false;
      for (const abortAt of [...aborts, -1]) {
        if (!isDone) ({ checkpoint: from, isDone } = await lives(store, from, abortAt));
      }
      expect(await left(store)).toEqual(await left(whole));
      expect(store.superseded).toEqual([]);
    }),
    { numRuns: 30 },
  );
});

test("close in the middle of a measurement cuts it off, and nothing is written afterwards", async () => {
  const toy = toyTraining();
  const measuring = gate();
  const entered = gate();
  const log: string[] = [];
  const run = {
    ...toy.store,
    put: async (...given: Parameters<typeof toy.store.put>) => {
      log.push(`put ${given[0].step}`);
      await toy.store.put(...given);
    },
    close: async () => void log.push("closed"),
  };
  const callback = everyOther(() => {
    if (toy.weights === 0) return;
    entered.open();
    return measuring.passed;
  });
  const session = openSession(toy.options([callback], { run }));
  await session.begin();
  await session.stepEnd();
  toy.step();
  const stepping = session.stepEnd();
  await entered.passed;
  const closing = session.close();
  await expect(session.save()).rejects.toThrow();
  measuring.open();
  expect((await stepping).stop).toBe("aborted: the session was closed");
  await closing;
  await session.close();
  expect(log).toEqual(["put 0", "closed"]);
});
