import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { Evidence, Guard, TrainerCallback, Session, SessionOptions } from "@periodic-eval/contracts";
import { streamGuard } from "../../random/guards.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { displayLogger } from "../../console/console-logger.ts";
import { undisturbed } from "@periodic-eval/store";
import { fakeGuard } from "@periodic-eval/testing";
import {
  toyEvaluation,
  toyTraining,
  type ToyTraining,
} from "../../../../testing/src/toy-training.test-data.ts";
import { withSession } from "../loop/session.ts";
import { runHookGuarded } from "./guarded.ts";

const train = (toy: ToyTraining) => async (session: Session) => {
  let stop = (await session.begin()).stop;
  for (let step = 0; step < 10 && stop === null; step++) {
    toy.step();
    ({ stop } = await session.stepEnd());
  }
  return stop;
};

const healthy = (name: string, items: number) =>
  new PeriodicCallback(toyEvaluation({ name, items }), { schedule: [everyPercent(50)] });

/** A training whose random stream counts its draws. The rogue hook draws at step 3. */
function drawingTraining(rogue: (draw: () => void) => TrainerCallback) {
  const toy = toyTraining();
  let draws = 0;
  const guards = [streamGuard("dropout", () => `${draws} draws`)];
  const callback = rogue(() => void (draws += 1));
  return { toy, guards, callback };
}

const drawsInHook = (id: string) => (draw: () => void) => ({
  id,
  onStepEnd({ progress }: { readonly progress: { readonly step: number } }) {
    if (progress.step === 3) draw();
  },
});

it("stops training at a hook that draws from training's stream, and records it in the next snapshot", async () => {
  const { toy, guards, callback } = drawingTraining(drawsInHook("rogue"));
  const stop = await withSession(toy.options([callback, healthy("toy", 3)], { guards }), train(toy));
  expect(stop).toBe('guard "dropout" saw training disturbed by onStepEnd of callback "rogue" at step 3');
  const snapshots = await toy.store.list();
  expect(snapshots.map(({ id, step }) => [id, step])).toEqual([
    ["toy", 0],
    ["toy", 3],
  ]);
  expect(snapshots[1]!.receipt.filter(({ intact }) => intact === false)).toEqual([
    {
      part: "dropout",
      before: "0 draws",
      after: "1 draws",
      intact: false,
      note: 'by onStepEnd of callback "rogue" at step 3',
    },
  ]);
});

it("warns once of a leak of a callback in several hooks, records it in the next snapshot, and stops nothing", async () => {
  const toy = toyTraining();
  let tensors = 0;
  const guard = fakeGuard({
    name: "tensors",
    around: "hooks",
    advisory: true,
    observe: () => `${tensors} tensors`,
  });
  const leak = () => void tensors++;
  const leaking = Object.assign(healthy("toy", 3), { onLog: leak, onStepBegin: leak });
  const leakingAlone: TrainerCallback = { id: "alone", onLog: () => void tensors++ };
  const options = toy.options([leaking, leakingAlone], { guards: [guard] });
  await withSession(options, async (session) => {
    for (let step = 1; step <= 10; step++) expect((await session.stepEnd({ metrics: {} })).stop).toBeNull();
  });
  const found = await toy.store.list();
  expect(found.map(({ id, step }) => [id, step])).toEqual([
    ["toy", 0],
    ["toy", 5],
    ["toy", 10],
  ]);
  expect(found[1]!.receipt.at(-2)).toEqual({
    part: "tensors",
    before: "0 tensors",
    after: "1 tensors",
    intact: false,
    advisory: true,
    note: 'by onStepBegin of callback "toy" at step 0',
  });
  expect(toy.warnings()).toEqual([
    'guard "tensors": saw a change by onStepBegin of callback "toy" at step 0 (reported once): 0 tensors before, 1 tensors after',
    'guard "tensors": saw a change by onLog of callback "alone" at step 1 (reported once): 2 tensors before, 3 tensors after',
  ]);
});

/** Draws when it receives its last snapshot, so that no later snapshot can record it. */
async function drawsAtTheLastSnapshot(
  storeOf: (toy: ToyTraining) => SessionOptions["run"],
  onBrokenReceipt: "record" | "stop" = "record",
) {
  const { toy, guards, callback } = drawingTraining((draw) =>
    Object.assign(healthy("toy", 3), {
      onSnapshot: (_: unknown, { step }: { readonly step: number }) => void (step === 10 && draw()),
    }),
  );
  const lines: string[] = [];
  const display = displayLogger({ keep: (line) => lines.push(line), warn: () => undefined });
  await withSession(
    toy.options([callback], {
      run: storeOf(toy),
      guards,
      onBrokenReceipt,
      loggers: [toy.logger, display],
    }),
    train(toy),
  );
  const key = { phase: "train", id: "toy", step: 10 };
  const { receipt } = (await toy.store.get(key))!;
  const rows = await toy.store.rows(key);
  const broken = receipt.filter(({ intact }) => intact === false).length;
  return { toy, lines, broken, rows: rows.length, found: undisturbed(await toy.store.list())?.answer };
}

it("adds a disturbance after the last snapshot to that snapshot, and keeps its rows", async () => {
  const { lines, ...recorded } = await drawsAtTheLastSnapshot((toy) => toy.store);
  expect(recorded).toMatchObject({ broken: 1, rows: 3, found: "no" });
  expect(lines.at(-1)).toContain("training undisturbed: no (measuring changed dropout)");
  const stopped = await drawsAtTheLastSnapshot((toy) => toy.store, "stop");
  expect(stopped).toMatchObject({ broken: 1, rows: 3, found: "no" });
  // Also if the store refused the snapshot at first, so that only the session has the rows.
  let refusals = 2;
  const refusing = (toy: ToyTraining) => ({
    ...toy.store,
    put: async (...[snapshot, rows]: Parameters<typeof toy.store.put>) => {
      if (snapshot.step === 10 && refusals-- > 0) throw new Error("ENOSPC");
      await toy.store.put(snapshot, rows);
    },
  });
  expect(await drawsAtTheLastSnapshot(refusing)).toMatchObject({ broken: 1, rows: 3, found: "no" });
});

it("leaves a snapshot unchanged if its rows cannot be read", async () => {
  const unreadable = (toy: ToyTraining) => ({
    ...toy.store,
    rows: async (key: Parameters<typeof toy.store.rows>[0]) => {
      if (key.step === 10) throw new Error("EIO");
      return toy.store.rows(key);
    },
  });
  const { toy, broken, rows } = await drawsAtTheLastSnapshot(unreadable);
  expect([broken, rows]).toEqual([0, 3]);
  expect(toy.warnings().at(-1)).toBe(
    "resume: the rows of train/toy/10 cannot be read, so it lacks what hooks changed after it: EIO",
  );
});

it("records a hook's disturbance in the next snapshot", async () => {
  const { toy, guards, callback } = drawingTraining((draw) =>
    Object.assign(healthy("toy", 3), { onLog: draw }),
  );
  const options = toy.options([callback], { guards, onBrokenReceipt: "record" });
  await withSession(options, async (session) => {
    await session.begin();
    for (let step = 1; step <= 10; step++) await session.stepEnd(step === 3 ? { metrics: { loss: 1 } } : {});
  });
  const broken = (await toy.store.list()).map(({ step, receipt }) => [
    step,
    receipt.filter(({ intact }) => intact === false).length,
  ]);
  expect(broken).toEqual([
    [0, 0],
    [5, 1],
    [10, 0],
  ]);
});

it("warns once of a hook that disturbs every step, and records it as one entry", async () => {
  const { toy, guards, callback } = drawingTraining((draw) =>
    Object.assign(healthy("toy", 3), { onStepBegin: draw }),
  );
  const options = toy.options([callback], { guards, onBrokenReceipt: "record" });
  await withSession(options, async (session) => {
    for (let step = 1; step <= 10; step++) {
      await session.stepBegin();
      await session.stepEnd();
    }
  });
  const entries = (await toy.store.list()).map(({ step, receipt }) => [
    step,
    ...receipt.filter(({ part }) => part === "dropout").flatMap(({ note }) => note ?? []),
  ]);
  const by = (step: number) => `by onStepBegin of callback "toy" at step ${step}`;
  // Before steps 1 to 5 and 6 to 10, with 0 to 4 and 5 to 9 steps done.
  expect(entries).toEqual([[0], [5, by(0)], [10, by(5)]]);
  expect(toy.warnings().length).toBe(1);
});

it('throws from the call in which a hook disturbs training, with onBrokenReceipt "throw"', async () => {
  const { toy, guards, callback } = drawingTraining(drawsInHook("rogue"));
  const running = withSession(toy.options([callback], { guards, onBrokenReceipt: "throw" }), train(toy));
  await expect(running).rejects.toThrow('a training disturbed by onStepEnd of callback "rogue" at step 3');
});

const observed: Evidence = { part: "slow", before: "a", after: "a", intact: true };

it.each([
  [
    "enter",
    { enter: async () => ({ before: "a", leave: () => observed }) },
    'guard "slow" returned a promise around a hook',
  ],
  [
    "leave",
    { enter: () => ({ before: "a", leave: async () => observed }) },
    "it returned a promise around a hook",
  ],
] as const)("says that a guard around hooks returned a promise from %s", (_, guard, message) => {
  const slow = { name: "slow", around: "hooks", ...guard } as unknown as Guard;
  const changes: Evidence[] = [];
  const outcome = runHookGuarded(
    [slow],
    { seed: "a" },
    () => undefined,
    (change) => changes.push(change),
  );
  const error = "error" in (outcome as object) ? String((outcome as { error: unknown }).error) : "";
  expect(error + changes.map(({ note }) => note).join("")).toContain(message);
});
