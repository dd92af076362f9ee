import fc from "fast-check";
import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { atSteps, everyPercent, everySteps } from "../../schedule/triggers.ts";
import type {
  Snapshot,
  SnapshotStore,
  Session,
  SessionOptions,
  SessionState,
} from "@periodic-eval/contracts";
import { memoryStore, type MemoryStore } from "@periodic-eval/testing";
import {
  toyEvaluation,
  toyTraining,
  type ToyEvaluationOptions,
  type ToyTraining,
} from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "../loop/session.ts";

const schedule = [everyPercent(20)];
const toyCallback = (options: ToyEvaluationOptions = {}) =>
  new PeriodicCallback(toyEvaluation(options), { schedule });

async function trainTo(toy: ToyTraining, session: Session, last: number): Promise<void> {
  while (session.progress.step < last) {
    toy.step();
    await session.stepEnd();
  }
}

/** Trains to step 8, keeps the checkpoint of step 4, and crashes: nothing is ended or closed. */
async function diesAtStep8(): Promise<{ store: MemoryStore; state: SessionState; weights: number }> {
  const toy = toyTraining();
  const session = openSession(toy.options([toyCallback()]));
  await session.begin();
  await trainTo(toy, session, 4);
  const state = await session.save();
  const { weights } = toy;
  await trainTo(toy, session, 8);
  return { store: toy.store, state: JSON.parse(JSON.stringify(state)) as SessionState, weights };
}

/** Resumes from step 4 to the end. Returns how often it measured, and the superseded snapshots. */
async function resumes(
  changes: Partial<SessionOptions> = {},
  evaluation: ToyEvaluationOptions = {},
  disturb = 0,
): Promise<{ measured: number; why: readonly (readonly [number, string])[]; found: readonly Snapshot[] }> {
  const { store, state, weights } = await diesAtStep8();
  const toy = toyTraining(store);
  toy.weights = weights + disturb;
  let measured = 0;
  const callback = toyCallback({ ...evaluation, onMeasure: () => void measured++ });
  await withSession(toy.options([callback], { resume: state, ...changes }), async (session) => {
    await session.begin();
    await trainTo(toy, session, 10);
  });
  return {
    measured,
    why: store.superseded.map(({ snapshot, why }) => [snapshot.step, why] as const),
    found: await store.list(),
  };
}

const everyStep = [0, 2, 4, 6, 8, 10];

it("adopts snapshots beyond the resumed step if everything agrees, and measures only step 10", async () => {
  const { measured, why, found } = await resumes();
  expect(measured).toBe(1);
  expect(why).toEqual([]);
  expect(found.map(({ step, status }) => [step, status])).toEqual(
    everyStep.map((step) => [step, "complete"]),
  );
});

it.each([
  ["weights", {}, {}, 1, "its weights were different"],
  ["version", {}, { version: "2" }, 0, "it was of version 1"],
  ["items and options", {}, { items: 7 }, 0, "its items, options, model or seed were different"],
  ["seed", { seed: "43" }, {}, 0, "its items, options, model or seed were different"],
  ["set of guards, without that of weights", { guards: [] }, {}, 0, "its weights cannot be compared"],
] as const)(
  "supersedes a snapshot and repeats the measurement with another %s",
  async (_, changes, evaluation, disturb, reason) => {
    const { measured, why, found } = await resumes(changes, evaluation, disturb);
    expect(measured).toBe(3); // at 6, 8 and 10
    expect(why).toEqual([
      [6, reason],
      [8, reason],
    ]);
    expect(found.map(({ step }) => step)).toEqual(everyStep);
  },
);

it("adopts snapshots by the fingerprint of a served model", async () => {
  const served = (toy: ToyTraining) => ({
    guards: [],
    model: () => ({ ...toy.model, identity: { ...toy.model.identity, weights: `w${toy.weights}` } }),
  });
  const first = toyTraining();
  await withSession(first.options([toyCallback()], served(first)), (session) => trainTo(first, session, 10));
  const again = toyTraining(first.store);
  let measured = 0;
  const callback = toyCallback({ onMeasure: () => void measured++ });
  await withSession(again.options([callback], served(again)), (session) => trainTo(again, session, 10));
  expect(measured).toBe(0);
  expect(first.store.superseded).toEqual([]);
});

it("repeats a failed measurement beyond the resumed step", async () => {
  const { store, state, weights } = await diesAtStep8();
  const [at6] = (await store.list()).filter(({ step }) => step === 6);
  await store.put({ ...at6!, status: "failed", reason: "no memory", metrics: {} }, []);
  const toy = toyTraining(store);
  toy.weights = weights;
  await withSession(toy.options([toyCallback()], { resume: state }), (session) => trainTo(toy, session, 10));
  expect(store.superseded.map(({ snapshot, why }) => [snapshot.step, why])).toEqual([[6, "it was failed"]]);
  expect((await store.list()).every(({ status }) => status === "complete")).toBe(true);
});

it("supersedes snapshots of a longer training when the phase ends before them", async () => {
  const { store, state, weights } = await diesAtStep8();
  const toy = toyTraining(store);
  toy.weights = weights;
  await withSession(toy.options([toyCallback()], { resume: state }), (session) => trainTo(toy, session, 5));
  expect(store.superseded.map(({ snapshot, why }) => [snapshot.step, why])).toEqual([
    [6, "the phase ended at step 5"],
    [8, "the phase ended at step 5"],
  ]);
  expect((await store.list()).map(({ step, crossed }) => [step, crossed])).toEqual([
    [0, ["start"]],
    [2, ["every 20 percent: 20"]],
    [4, ["every 20 percent: 40"]],
    [5, ["end"]],
  ]);
});

it("supersedes snapshots of thresholds that are no longer crossed, and keeps settled ones", async () => {
  const { store, state, weights } = await diesAtStep8();
  const toy = toyTraining(store);
  toy.weights = weights;
  const sparse = new PeriodicCallback(toyEvaluation(), { schedule: [atSteps([8])] });
  await withSession(toy.options([sparse], { resume: state }), (session) => trainTo(toy, session, 10));
  expect(store.superseded.map(({ snapshot, why }) => [snapshot.step, why])).toEqual([
    [6, "no threshold at this step was crossed again"],
  ]);
  const found = await store.list();
  expect(found.map(({ step }) => step)).toEqual([0, 2, 4, 8, 10]);
  expect(found[3]!.crossed).toEqual(["at steps: 8"]);
});

it("keeps a snapshot until its threshold is crossed again: an abort supersedes nothing", async () => {
  const { store, state, weights } = await diesAtStep8();
  const toy = toyTraining(store);
  toy.weights = weights;
  const controller = new AbortController();
  await withSession(
    toy.options([toyCallback()], { resume: state, signal: controller.signal }),
    async (session) => {
      await session.begin();
      controller.abort();
    },
  );
  expect(store.superseded).toEqual([]);
  expect((await store.list()).map(({ step }) => step)).toEqual([0, 2, 4, 6, 8]);
});

it("does not repeat the end after a resume at the last step, unless its snapshot failed", async () => {
  const toy = toyTraining();
  let state!: SessionState;
  await withSession(toy.options([toyCallback()]), async (session) => {
    await trainTo(toy, session, 10);
    state = await session.save();
  });
  const again = async () => {
    let measured = 0;
    const callback = toyCallback({ onMeasure: () => void measured++ });
    await withSession(
      toy.options([callback], { resume: state }),
      async (session) => void (await session.begin()),
    );
    return measured;
  };
  expect(await again()).toBe(0);
  const last = (await toy.store.list()).at(-1)!;
  await toy.store.put({ ...last, status: "failed", reason: "no memory" }, []);
  expect(await again()).toBe(1);
  expect((await toy.store.list()).at(-1)).toMatchObject({
    step: 10,
    status: "complete",
    crossed: ["every 20 percent: 100", "end"],
  });
});

it("adopts matching snapshots when a phase starts again over an old one, and supersedes the rest", async () => {
  const first = toyTraining();
  await withSession(first.options([toyCallback()]), (session) => trainTo(first, session, 10));
  const again = toyTraining(first.store);
  await withSession(again.options([toyCallback()], { maxSteps: 5 }), async (session) => {
    await session.begin();
    await trainTo(again, session, 5);
  });
  const found = await first.store.list();
  expect(found.map(({ step, max_steps, pct }) => [step, max_steps, pct])).toEqual([
    [0, 5, 0],
    [1, 5, 20],
    [2, 5, 40],
    [3, 5, 60],
    [4, 5, 80],
    [5, 5, 100],
  ]);
  expect(first.store.superseded.map(({ snapshot }) => snapshot.step)).toEqual([6, 8, 10]);
});

it("restores the state of callbacks, and names a callback that rejects it", async () => {
  const toy = toyTraining();
  const counting = () => {
    const callback = {
      id: "counting",
      count: 0,
      onStepEnd: () => void callback.count++,
      state: () => callback.count,
      restore: (count: unknown) => void (callback.count = count as number),
    };
    return callback;
  };
  let state!: SessionState;
  await withSession(toy.options([counting()]), async (session) => {
    await trainTo(toy, session, 3);
    state = await session.save();
  });
  expect(state).toMatchObject({
    phase: "train",
    progress: { step: 3, ended: false },
    runStepOffset: 0,
    callbacks: { counting: 3 },
  });
  const resumed = counting();
  await withSession(toy.options([resumed], { resume: state }), (session) => trainTo(toy, session, 5));
  expect(resumed.count).toBe(5);
  const refusing = {
    id: "counting",
    restore() {
      throw new Error("no");
    },
  };
  const session = openSession(toy.options([refusing], { resume: state }));
  await expect(session.begin()).rejects.toThrow('callback "counting"');
  expect(() => openSession(toy.options([], { resume: state, phase: "em" }))).toThrow(
    'a state of phase "train"',
  );
});

/** A store that stops answering from its n-th operation on, or when killed. */
function mortal(
  store: MemoryStore,
  dieAt: number,
): { store: SnapshotStore; died: Promise<void>; kill(): void } {
  let operations = 0;
  let isDead = false;
  let kill!: () => void;
  const died = new Promise<void>((resolve) => {
    kill = () => {
      isDead = true;
      resolve();
    };
  });
  const alive = async () => {
    if (operations++ === dieAt) kill();
    if (isDead) await new Promise<never>(() => undefined);
  };
  return {
    died,
    kill,
    store: {
      ...store,
      async put(...args) {
        await alive();
        await store.put(...args);
        await alive();
      },
      async supersede(...args) {
        await alive();
        await store.supersede(...args);
        await alive();
      },
    },
  };
}

interface Checkpoint {
  readonly state: SessionState;
  readonly weights: number;
}

interface Life {
  /** The operation of the store at which it crashes, */
  readonly dieAt: number;
  /** or the step after which it crashes. */
  readonly stopAt: number;
  readonly saveEvery: number;
  readonly maxSteps: number;
}

/** Trains from a checkpoint. Returns whether it reached the end. */
async function lives(
  store: MemoryStore,
  from: Checkpoint | null,
  life: Life,
  keep: (checkpoint: Checkpoint) => void,
): Promise<boolean> {
  const { dieAt, stopAt, saveEvery, maxSteps } = life;
  const toy = toyTraining();
  toy.weights = from?.weights ?? 0;
  const callbacks = [
    new PeriodicCallback(toyEvaluation({ items: 5 }), { schedule: [everyPercent(30), everySteps(4)] }),
    new PeriodicCallback(toyEvaluation({ name: "judged", graded: true, items: 4 }), {
      schedule: [everyPercent(25)],
    }),
  ];
  const body = mortal(store, dieAt);
  const options = toy.options(callbacks, {
    run: body.store,
    maxSteps,
    ...(from !== null && { resume: from.state }),
  });
  async function train(): Promise<boolean> {
    const session = openSession(options);
    await session.begin();
    while (session.progress.step < maxSteps) {
      toy.step();
      await session.stepEnd();
      if (session.progress.step % saveEvery === 0) {
        keep({
          state: JSON.parse(JSON.stringify(await session.save())) as SessionState,
          weights: toy.weights,
        });
      }
      if (session.progress.step === stopAt) {
        body.kill();
        return false;
      }
    }
    await session.end();
    await session.close();
    return true;
  }
  return Promise.race([train(), body.died.then(() => false)]);
}

/** Returns what a run leaves, without its times. */
async function left(store: MemoryStore): Promise<unknown> {
  const found = await store.list();
  const rows = await Promise.all(found.map((snapshot) => store.rows(snapshot)));
  return found.map((snapshot, i) => ({ ...snapshot, timing: null, rows: rows[i] }));
}

it("leaves the same snapshots as the uninterrupted run after kills at any points and resumes", async () => {
  const plan = fc.record({
    maxSteps: fc.integer({ min: 1, max: 13 }),
    saveEvery: fc.integer({ min: 1, max: 5 }),
    deaths: fc.array(
      fc.record({ dieAt: fc.integer({ min: 0, max: 30 }), stopAt: fc.integer({ min: 1, max: 14 }) }),
      { maxLength: 4 },
    ),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ maxSteps, saveEvery, deaths }) => {
      const whole = memoryStore();
      const immortal = { dieAt: Number.POSITIVE_INFINITY, stopAt: -1, saveEvery, maxSteps };
      expect(await lives(whole, null, immortal, () => undefined)).toBe(true);

      const store = memoryStore();
      let checkpoint: Checkpoint | null = null;
      const keep = (next: Checkpoint) => void (checkpoint = next);
      let isDone = false;
      for (const death of deaths) {
        if (!isDone) isDone = await lives(store, checkpoint, { ...death, saveEvery, maxSteps }, keep);
      }
      if (!isDone) expect(await lives(store, checkpoint, immortal, keep)).toBe(true);

      expect(await left(store)).toEqual(await left(whole));
      // Weights are restored exactly, so no measurement is repeated.
      expect(store.superseded).toEqual([]);
    }),
    { numRuns: 30 },
  );
});
