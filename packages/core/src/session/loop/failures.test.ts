import { expect, test } from "vitest";
import { PeriodicCallback } from "../../callback/periodic.ts";
import type { TrainerCallback } from "../../contracts/callback.ts";
import { everyPercent, everySteps } from "../../schedule/triggers.ts";
import { gate, toyEvaluation, toyTraining } from "../../testing/toy-training.ts";
import { openSession, withSession } from "./session.ts";
import type { Session, SessionState } from "../../contracts/session.ts";

/** Trains to the end, or until told to stop. */
const train =
  (toy: ReturnType<typeof toyTraining>, steps = 10) =>
  async (session: Session) => {
    await session.begin();
    for (let step = 0; step < steps; step++) {
      toy.step();
      const { stop } = await session.stepEnd({ metrics: { loss: 1 / (step + 1) } });
      if (stop !== null) return stop;
    }
    return null;
  };

test("a failing evaluation leaves a record, is told of, and training goes on", async () => {
  const toy = toyTraining();
  let asked = 0;
  const evaluation = toyEvaluation({
    onMeasure() {
      if (++asked === 2) throw new Error("no memory");
    },
  });
  const errors: unknown[] = [];
  const callback = new PeriodicCallback(evaluation, { schedule: [everyPercent(50)] });
  const hearing = Object.assign(callback, {
    onError: (_: unknown, error: unknown) => void errors.push(error),
  });
  expect(await withSession(toy.options([hearing]), train(toy))).toBeNull();
  const found = await toy.store.list();
  expect(found.map(({ step, status, reason }) => [step, status, reason])).toEqual([
    [0, "complete", null],
    [5, "failed", "no memory"],
    [10, "complete", null],
  ]);
  expect(found[1]).toMatchObject({ weights: "w" + weightsAfter(5), metrics: {}, samples: null });
  expect(errors).toEqual([new Error("no memory")]);
  expect(found[2]!.paired.previous!["hit_rate"]!.step).toBe(0);
});

test("where the last step failed, the end measures it again", async () => {
  const toy = toyTraining();
  let asked = 0;
  const evaluation = toyEvaluation({
    onMeasure() {
      if (++asked === 2) throw new Error("no memory");
    },
  });
  await withSession(
    toy.options([new PeriodicCallback(evaluation, { schedule: [everyPercent(100)] })]),
    train(toy),
  );
  const found = await toy.store.list();
  expect(found.map(({ step, status, crossed }) => [step, status, crossed])).toEqual([
    [0, "complete", ["start"]],
    [10, "complete", ["every 100 percent: 100", "end"]],
  ]);
});

test('onFailure "throw": the evaluation\'s error comes out of stepEnd, after its record', async () => {
  const toy = toyTraining();
  const evaluation = toyEvaluation({
    onMeasure() {
      if (toy.weights !== 0) throw new Error("no memory");
    },
  });
  const callback = new PeriodicCallback(evaluation, { schedule: [everyPercent(50)] });
  const running = withSession(toy.options([callback], { onFailure: "throw" }), train(toy));
  await expect(running).rejects.toThrow("no memory");
  expect((await toy.store.list()).map(({ status }) => status)).toEqual(["complete", "failed"]);
});

test("a hook that throws is told of and recorded, and training goes on; also where its onError throws", async () => {
  const toy = toyTraining();
  const told: unknown[] = [];
  const throwing: TrainerCallback = {
    id: "bad",
    onStepEnd({ progress }) {
      if (progress.step === 3) throw new Error("own mistake");
    },
    onError(_, error) {
      told.push(error);
      throw new Error("again");
    },
  };
  expect(await withSession(toy.options([throwing]), train(toy))).toBeNull();
  expect(told).toEqual([new Error("own mistake")]);
  expect(toy.warnings()).toEqual([
    'callback "bad": onStepEnd threw at step 3: own mistake',
    'callback "bad": onError threw: again',
  ]);
});

test("what training throws is told to every callback, all is closed, and the error comes out", async () => {
  const toy = toyTraining();
  const log: string[] = [];
  const callback = (id: string): TrainerCallback => ({
    id,
    onError: (_, error) => void log.push(`${id} ${(error as Error).message}`),
    onTrainEnd: () => void log.push("never"),
    close: () => void log.push(`${id} closed`),
  });
  const logger = { name: "l", close: () => void log.push("logger closed") };
  const options = toy.options([callback("a"), callback("b")], { loggers: [toy.logger, logger] });
  const running = withSession(options, async (session) => {
    await session.stepEnd();
    throw new Error("loss is NaN");
  });
  await expect(running).rejects.toThrow("loss is NaN");
  expect(log).toEqual(["a loss is NaN", "b loss is NaN", "a closed", "b closed", "logger closed"]);
});

test("a logger that throws is told of once and never stops training", async () => {
  const toy = toyTraining();
  const seen: number[] = [];
  const broken = {
    name: "broken",
    train(metrics: Readonly<Record<string, number>>) {
      seen.push(metrics["loss"]!);
      throw new Error("no disk");
    },
    snapshot: () => Promise.reject(new Error("no disk")),
  };
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)] });
  expect(
    await withSession(toy.options([callback], { loggers: [broken, toy.logger] }), train(toy)),
  ).toBeNull();
  expect(seen.length).toBe(10);
  expect(toy.warnings()).toEqual(['logger "broken": snapshot threw (reported once): no disk']);
});

test("a logger that failed is heard once more when it closes: how much was lost is known then", async () => {
  const toy = toyTraining();
  const fail = (what: string) => () => Promise.reject(new Error(what));
  const broken = {
    name: "broken",
    begin: fail("no server"),
    train: fail("no server"),
    close: fail("3 lost"),
  };
  await withSession(toy.options([], { loggers: [broken, toy.logger] }), train(toy));
  expect(toy.warnings()).toEqual([
    'logger "broken": begin threw (reported once): no server',
    'logger "broken": close threw: 3 lost',
  ]);
});

test("steps and epochs do not fall, calls do not overlap, and a closed session answers no more", async () => {
  const toy = toyTraining();
  const session = openSession(
    toy.options([new PeriodicCallback(toyEvaluation(), { schedule: [everySteps(1)] })]),
  );
  await session.begin();
  await session.stepEnd({ step: 4 });
  await expect(session.stepEnd({ step: 3 })).rejects.toThrow("step 3 after step 4");
  await expect(session.stepEnd({ step: Number.NaN })).rejects.toThrow("step NaN");
  await expect(session.stepEnd({ epoch: -1 })).rejects.toThrow("epoch -1 after epoch 0");
  await expect(session.stepEnd({ epoch: Number.POSITIVE_INFINITY })).rejects.toThrow("epoch Infinity");
  const first = session.stepEnd();
  await expect(session.stepEnd()).rejects.toThrow("Await session.stepEnd()");
  await first;
  await session.close();
  await session.close();
  await expect(session.stepEnd()).rejects.toThrow("a call after close");
});

test("a measurement asked for after the end is refused by name", async () => {
  const toy = toyTraining();
  const grading = gate();
  const late: TrainerCallback = {
    id: "late",
    onSnapshot: ({ measure, progress }) => {
      if (progress.ended) measure({ id: "more", evaluation: toyEvaluation(), crossed: [] });
    },
  };
  const evaluation = toyEvaluation({ graded: true, onGrade: () => grading.passed });
  const graded = new PeriodicCallback(evaluation, { schedule: [], atStart: false });
  const session = openSession(toy.options([graded, late], { maxSteps: 1 }));
  await train(toy, 1)(session);
  await session.end();
  grading.open();
  await session.close();
  expect((await toy.store.list()).map(({ id, status }) => [id, status])).toEqual([
    ["more", "complete"], // asked for on the ungraded snapshot, in the last window
    ["toy", "complete"],
  ]);
  expect(toy.warnings().join()).toContain('a request for "more" after the end of training');
});

test.each([
  ["big", 1n, "a bigint"],
  ["nats", [0, Number.NaN], "NaN"],
  ["scores", new Float32Array(2), "a Float32Array"],
  ["at", undefined, null],
] as const)(
  "a row whose %s is %o fails its measurement where JSON cannot hold it",
  async (name, value, what) => {
    const toy = toyTraining();
    const evaluation = {
      ...toyEvaluation(),
      measure: async () => Array.from({ length: 8 }, (_, i) => ({ id: `q${i}`, hit: true, [name]: value })),
    };
    const wrong = new PeriodicCallback(evaluation, { schedule: [], atEnd: false });
    await withSession(toy.options([wrong]), train(toy));
    const [snapshot] = await toy.store.list();
    if (what === null) return expect(snapshot).toMatchObject({ status: "complete" });
    expect(snapshot).toMatchObject({ status: "failed" });
    expect(snapshot!.reason).toContain(`row "q0".${name}`);
    expect(snapshot!.reason).toContain(`got ${what}, expected a JSON value`);
  },
);

test("more rows than samplesPerItem says fail the measurement: half of them would pass for the whole", async () => {
  const toy = toyTraining();
  const evaluation = {
    ...toyEvaluation({ items: 2 }),
    measure: async () => Array.from({ length: 8 }, (_, i) => ({ id: `q${i % 2}/${i}`, hit: true })),
  };
  const callback = new PeriodicCallback(evaluation, { schedule: [], atEnd: false });
  await withSession(toy.options([callback]), train(toy));
  const [snapshot] = await toy.store.list();
  expect(snapshot!.reason).toContain("got 8 rows for 2 items, expected at most 2: samplesPerItem is 1");
});

test("a partial record is kept where measuring it again at the end fails", async () => {
  const toy = toyTraining();
  let isEnding = false;
  const evaluation = {
    ...toyEvaluation(),
    async measure() {
      if (isEnding) throw new Error("no memory");
      return [{ id: "q0", reply: "a", hit: true }];
    },
  };
  const callback = new PeriodicCallback(evaluation, { schedule: [everyPercent(100)] });
  await withSession(toy.options([callback]), async (session) => {
    await train(toy)(session);
    isEnding = true;
  });
  const key = { phase: "train", id: "toy", step: 10 };
  expect(await toy.store.get(key)).toMatchObject({
    status: "partial",
    reason: "1 of 8 rows; a repetition failed: no memory",
    metrics: { hit_rate: { value: 1, n: 1 } },
    crossed: ["every 100 percent: 100", "end"],
  });
  expect((await toy.store.rows(key)).length).toBe(1);
});

test("a state that throws, or that JSON cannot hold, ends no training; the one before stands", async () => {
  const toy = toyTraining();
  const told: unknown[] = [];
  let state: () => number = () => 1;
  const callback = {
    id: "counting",
    state: () => state(),
    onError: (_: unknown, error: unknown) => void told.push(error),
  };
  await withSession(toy.options([callback]), async (session) => {
    await session.begin();
    expect((await session.save()).callbacks).toEqual({ counting: 1 });
    state = () => {
      throw new Error("state broke");
    };
    expect((await session.save()).callbacks).toEqual({ counting: 1 });
    state = () => Number.NaN;
    expect((await session.save()).callbacks).toEqual({ counting: 1 });
  });
  expect(told.length).toBe(2);
  expect(toy.warnings()[0]).toBe(
    'callback "counting": state threw, and the checkpoint of step 0 holds the previous state: state broke',
  );
});

test("the end of an aborted phase is not crossed: a resumed one comes to it", async () => {
  const toy = toyTraining();
  const controller = new AbortController();
  const callback = () => new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)] });
  const session = openSession(toy.options([callback()], { signal: controller.signal }));
  await train(toy, 3)(session);
  controller.abort();
  const resume = await session.save();
  await session.end();
  await session.close();
  expect((await toy.store.list()).map(({ step }) => step)).toEqual([0]);
  await withSession(toy.options([callback()], { resume }), train(toy, 7));
  expect((await toy.store.list()).map(({ step, status, crossed }) => [step, status, crossed])).toEqual([
    [0, "complete", ["start"]],
    [5, "complete", ["every 50 percent: 50"]],
    [10, "complete", ["every 50 percent: 100"]],
  ]);
});

test("a wrong option is an error at opening that names the nearest right one", () => {
  const toy = toyTraining();
  const open = (changes: object) => () => openSession(toy.options([], changes));
  expect(open({ gaurds: [] })).toThrow('Did you mean "guards"?');
  expect(open({ maxSteps: Number.NaN })).toThrow("session options.maxSteps: got NaN");
  expect(open({ maxSteps: -1 })).toThrow("got -1");
  expect(open({ phase: "../x" })).toThrow("session options.phase");
  // The store keeps what it sets aside in a folder of this name.
  expect(open({ phase: "Superseded" })).toThrow('session options.phase: got "Superseded"');
  expect(open({ seed: 42 })).toThrow(
    "session options.seed: got 42, expected a string. Put the seed in quotes.",
  );
  expect(open({ callbacks: [{ id: "a", on: "bse" }] })).toThrow('callbacks[0].on: got "bse"');
  expect(open({ familywise: "each" })).toThrow('"primary" or "all"');
  expect(open({ run: "" })).toThrow("Name the run's folder");
  expect(open({ onFailure: "ignore" })).toThrow('"record" or "throw"');
  expect(open({ budget: { drainSecond: 1 } })).toThrow('Did you mean "drainSeconds"?');
  expect(open({ budget: { drainSeconds: Number.NaN } })).toThrow("got NaN");
  expect(open({ callbacks: [{ id: "a" }, { id: "a" }] })).toThrow('a second callback with id "a"');
  expect(open({ callbacks: [{ id: "a b" }] })).toThrow("callbacks[0].id");
});

test("a state that throws after a resume leaves what the checkpoint resumed from had", async () => {
  const toy = toyTraining();
  const seen = { losses: [1] };
  const restoring = (isBroken: boolean): TrainerCallback => ({
    id: "losses",
    state() {
      if (isBroken) throw new Error("state broke");
      return seen;
    },
    restore: (state) => void (state as typeof seen).losses.push(7),
  });
  const first = openSession(toy.options([restoring(false)]));
  await first.stepEnd();
  const resume = await first.save();
  // What a callback keeps on changing is no checkpoint.
  seen.losses.push(2);
  expect(resume.callbacks).toEqual({ losses: { losses: [1] } });
  await first.close();
  const second = openSession(toy.options([restoring(true)], { resume }));
  await second.stepEnd();
  expect((await second.save()).callbacks).toEqual({ losses: { losses: [1] } });
  await second.close();
});

test("a state to resume from is checked part by part", () => {
  const toy = toyTraining();
  const progress = { step: 4, maxSteps: 10, epoch: 0, elapsedSeconds: 8, ended: false };
  const state = { phase: "train", progress, runStepOffset: 0, callbacks: {}, windowSeconds: 1 };
  const open = (resume: object) => () => openSession(toy.options([], { resume: resume as SessionState }));
  expect(open(state)).not.toThrow();
  const { windowSeconds: _, ...without } = state;
  expect(open(without)).toThrow(
    "session options.resume.windowSeconds: got undefined, expected a number of 0 or more",
  );
  expect(open({ ...state, phase: "em" })).toThrow('got a state of phase "em", expected one of phase "train"');
  expect(open({ ...state, progress: { ...progress, step: 1.5 } })).toThrow("resume.progress.step: got 1.5");
  expect(open({ ...state, progress: { ...progress, maxSteps: "10" } })).toThrow('maxSteps: got "10"');
  expect(open({ ...state, progress: { ...progress, epoch: Number.NaN } })).toThrow("epoch: got NaN");
  expect(open({ ...state, runStepOffset: -1 })).toThrow("resume.runStepOffset: got -1");
  expect(open({ ...state, callbacks: [] })).toThrow("resume.callbacks: got []");
  const firing = { by: "a", evaluation: { name: "e", version: "1" }, on: "model", plannedLooks: null };
  const crossed = [{ trigger: { every: 2, unit: "steps" }, at: 4 }];
  const owing = (changes: object) => open({ ...state, owed: { a: { ...firing, crossed, ...changes } } });
  expect(owing({})).not.toThrow();
  expect(owing({ by: 1 })).toThrow("resume.owed.a.by: got 1");
  expect(owing({ on: "models" })).toThrow("resume.owed.a.on");
  expect(owing({ evaluation: { name: "e" } })).toThrow("resume.owed.a.evaluation");
  expect(owing({ crossed: [{ trigger: { every: 2, unit: "stops" }, at: 4 }] })).toThrow(
    "resume.owed.a.crossed",
  );
});

/** The toy's weights after so many steps from 0. */
function weightsAfter(steps: number): number {
  const toy = toyTraining();
  for (let step = 0; step < steps; step++) toy.step();
  return toy.weights;
}
