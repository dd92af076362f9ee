import { expect, it } from "vitest";
import { displayLogger } from "../../console/console-logger.ts";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import {
  PeriodicEvalError,
  type SnapshotKey,
  type SnapshotStore,
  type Session,
} from "@periodic-eval/contracts";
import { everyPercent } from "../../schedule/triggers.ts";
import { exampleSnapshot } from "@periodic-eval/testing";
import {
  toyEvaluation,
  toyTraining,
  type ToyTraining,
} from "../../../../testing/src/toy-training.test-data.ts";
import { SnapshotWriter } from "./snapshot-writer.ts";
import { KnownSnapshots } from "./known-snapshots.ts";
import { withSession } from "../loop/session.ts";

const train = (toy: ToyTraining) => async (session: Session) => {
  for (let step = 0; step < 10; step++) {
    toy.step();
    await session.stepEnd();
  }
};
const schedule = [everyPercent(50)];
const full = new Error("ENOSPC: no space left on device");

/** The toy's store, which refuses some writes. */
const refusing = (toy: ToyTraining, refuses: (key: SnapshotKey) => boolean): SnapshotStore => ({
  ...toy.store,
  put: async (snapshot, rows) => {
    if (refuses(snapshot)) throw full;
    await toy.store.put(snapshot, rows);
  },
});

const writerOf = (store: SnapshotStore) =>
  new SnapshotWriter(store, new KnownSnapshots("train"), { warn: () => undefined, fail: () => undefined });

const found = async (toy: ToyTraining) =>
  (await toy.store.list()).map(({ id, step, status }) => `${id} ${step} ${status}`);

it("writes a failed snapshot instead of an invalid one, and does not delay others", async () => {
  const toy = toyTraining();
  const errors: unknown[] = [];
  const wrong = { ...toyEvaluation({ name: "wrong" }), plainKeys: () => ({ score: Number.NaN }) };
  const callbacks = [
    Object.assign(new PeriodicCallback(wrong, { schedule }), {
      onError: (_: unknown, error: unknown) => void errors.push(error),
    }),
    new PeriodicCallback(toyEvaluation(), { schedule }),
  ];
  await withSession(toy.options(callbacks), train(toy));
  expect(await found(toy)).toEqual([
    "toy 0 complete",
    "wrong 0 failed",
    "toy 5 complete",
    "wrong 5 failed",
    "toy 10 complete",
    "wrong 10 failed",
  ]);
  const key = { phase: "train", id: "wrong", step: 5 };
  expect(await toy.store.get(key)).toMatchObject({
    reason: expect.stringContaining("train/wrong/5: score: got NaN"),
    crossed: ["every 50 percent: 50"],
    weights: expect.stringMatching(/^w\d+$/),
    receipt: [{ part: "math-random" }, { part: "weights" }],
    provenance: { hash: null, items: null },
  });
  expect((await toy.store.rows(key)).length).toBe(8);
  // Twice at the last step: the end repeats the failed measurement.
  expect(errors.length).toBe(4);
});

const example = exampleSnapshot();

it.each([
  // What evaluations and guards make.
  ["metrics", 1n],
  ["warnings", 1n],
  ["receipt", [1n]],
  ["weights", 1n],
  ["answer_fields", 1n],
  ["provenance", { ...example.provenance, evaluation: 1n }],
] as const)("writes a failed snapshot, with its rows, for one whose %s is %o", async (name, value) => {
  const toy = toyTraining();
  const writer = writerOf(toy.store);
  await writer.commit({ ...example, [name]: value }, [{ id: "q1" }]);
  expect(writer.refused()).toEqual([]);
  const written = await toy.store.get(example);
  expect(written).toMatchObject({ status: "failed", reason: expect.stringContaining(name) });
  // The other fields that describe the measurement stand.
  for (const kept of ["evaluation", "crossed", "on", "epoch", "timing", "weights"] as const) {
    if (kept !== name) expect(written![kept]).toEqual(example[kept]);
  }
  expect(await toy.store.rows(example)).toEqual([{ id: "q1" }]);
});

it('throws the error of an invalid snapshot with onFailure "throw"', async () => {
  const toy = toyTraining();
  const wrong = { ...toyEvaluation(), plainKeys: () => ({ score: Number.NaN }) };
  const options = toy.options([new PeriodicCallback(wrong, { schedule })], { onFailure: "throw" });
  await expect(withSession(options, train(toy))).rejects.toThrow("train/toy/0: score");
});

it("does not delay other snapshots if the store rejects one until the end, and warns of its key once", async () => {
  const toy = toyTraining();
  const run = refusing(toy, ({ step }) => step === 5);
  const running = withSession(
    toy.options([new PeriodicCallback(toyEvaluation(), { schedule })], { run }),
    train(toy),
  );
  await expect(running).rejects.toThrow(
    "got 1 snapshots that could not be written (train/toy/5): ENOSPC: no space left on device, " +
      "expected a store that can be written. Free space or fix the folder's permissions. " +
      "Then resume from a checkpoint before step 5",
  );
  expect(await running.catch((error: Error) => error.cause)).toBe(full);
  expect(await found(toy)).toEqual(["toy 0 complete", "toy 10 complete"]);
  expect(toy.warnings()).toEqual([
    "store: could not write train/toy/5, which will be retried: ENOSPC: no space left on device",
  ]);
});

it("says in the last line that snapshots are not written, and the remedy once", async () => {
  const toy = toyTraining();
  const lines: string[] = [];
  const logger = displayLogger({ keep: (line) => lines.push(line), warn: () => undefined });
  const error = new PeriodicEvalError({
    code: "store",
    where: "index.jsonl",
    got: "ENOSPC",
    expected: "a path that can be written",
    fix: "Free space on that disk.",
  });
  const run = { ...toy.store, put: () => Promise.reject(error) };
  const options = toy.options([new PeriodicCallback(toyEvaluation(), { schedule })], { run });
  await expect(withSession({ ...options, loggers: [logger] }, train(toy))).rejects.toThrow(
    /\): index\.jsonl: got ENOSPC, expected a store that can be written\. Free space on that disk\. Then train the phase again:/,
  );
  expect(lines.at(-1)).toMatch(/^writing stopped \(3 snapshots could not be written\), 3 measurements/);
});

it("compares with a baseline that is not written yet, using the rows in memory", async () => {
  const toy = toyTraining();
  let isFull = true;
  const run = refusing(toy, () => isFull);
  await withSession(
    toy.options([new PeriodicCallback(toyEvaluation(), { schedule })], { run }),
    async (session) => {
      await train(toy)(session);
      isFull = false;
    },
  );
  const at5 = await toy.store.get({ phase: "train", id: "toy", step: 5 });
  // 2 comparisons planned after the baseline: 0.05 / 2.
  expect(at5!.paired.baseline!["hit_rate"]).toMatchObject({ step: 0, n_pairs: 8, alpha: 0.025 });
});

it("writes later measurements without a comparison if the rows of the baseline cannot be read", async () => {
  const toy = toyTraining();
  const run = {
    ...toy.store,
    rows: async (key: SnapshotKey) => {
      if (key.step === 0) throw new Error("EIO");
      return toy.store.rows(key);
    },
  };
  await withSession(toy.options([new PeriodicCallback(toyEvaluation(), { schedule })], { run }), train(toy));
  expect(await found(toy)).toEqual(["toy 0 complete", "toy 5 complete", "toy 10 complete"]);
  const at10 = await toy.store.get({ phase: "train", id: "toy", step: 10 });
  expect(at10!.paired).toMatchObject({ baseline: null, previous: { hit_rate: { step: 5, n_pairs: 8 } } });
  expect(toy.warnings()).toContain(
    "comparison: train/toy/10 is not compared with train/toy/0, whose rows cannot be read: EIO",
  );
});

it("supersedes a snapshot once, even if its waiting replacement is itself replaced", async () => {
  const toy = toyTraining();
  await toy.store.put(exampleSnapshot({ accuracy: 0.1 }), []);
  let refusals = 1;
  const writer = writerOf({
    ...toy.store,
    supersede: async (key: SnapshotKey, why: string) => {
      if (refusals-- > 0) throw full;
      await toy.store.supersede(key, why);
    },
  });
  await writer.commit(exampleSnapshot({ status: "grading" }), [{ id: "q1" }], {
    supersede: "its weights were different",
  });
  await writer.commit(exampleSnapshot({ accuracy: 0.9 }), [{ id: "q1" }]);
  expect(toy.store.superseded).toMatchObject([
    { snapshot: { accuracy: 0.1 }, why: "its weights were different" },
  ]);
  expect(await toy.store.list()).toMatchObject([{ status: "complete", accuracy: 0.9 }]);
});

it("repeats the store's own fix in the error of close", async () => {
  const toy = toyTraining();
  const locked = new PeriodicEvalError({
    code: "store",
    where: "runs/a/.lock",
    got: "a run that process 7 writes",
    expected: "a run of its own",
    fix: "End process 7.",
  });
  const run = { ...toy.store, put: () => Promise.reject(locked) };
  const running = withSession(
    toy.options([new PeriodicCallback(toyEvaluation(), { schedule: [] })], { run, maxSteps: 1 }),
    async () => undefined,
  );
  await expect(running).rejects.toThrow("got a run that process 7 writes");
  await expect(running).rejects.toThrow("End process 7. Then train the phase again");
});

it("retries refused snapshots before it returns a state, and warns if they cannot be written", async () => {
  const toy = toyTraining();
  let refusals = 1;
  const run = refusing(toy, ({ step }) => step === 5 || refusals-- > 0);
  const running = withSession(
    toy.options([new PeriodicCallback(toyEvaluation(), { schedule })], { run }),
    async (session) => {
      await session.save();
      expect(await found(toy)).toEqual(["toy 0 complete"]);
      expect(toy.warnings().length).toBe(1);
      await train(toy)(session);
      await session.save();
    },
  );
  await expect(running).rejects.toThrow("train/toy/5");
  expect(toy.warnings().at(-1)).toBe(
    "store: a run resumed from the checkpoint of step 10 will lack train/toy/5, which could not be written",
  );
});
