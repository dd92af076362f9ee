import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { TrainerCallback, Session, SessionState } from "@periodic-eval/contracts";
import { configError } from "@periodic-eval/contracts/options";
import { everyPercent, everySteps } from "../../schedule/triggers.ts";
import { gate, toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "./session.ts";

/** Trains to the end, or until a stop is requested. */
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

it("records a failing evaluation, warns, and continues training", async () => {
  const toy = toyTraining();
  let calls = 0;
  const evaluation = toyEvaluation({
    onMeasure() {
      if (++calls === 2) throw new Error("no memory");
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

it("repeats a measurement at the end if it failed at the last step", async () => {
  const toy = toyTraining();
  let calls = 0;
  const evaluation = toyEvaluation({
    onMeasure() {
      if (++calls === 2) throw new Error("no memory");
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

it('throws the evaluation\'s error from stepEnd with onFailure "throw", after writing its snapshot', async () => {
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

it("warns of an onSnapshot that throws a config error at the start, and calls its onError", async () => {
  const wrong = configError({ where: "watcher", got: "a group", expected: "another", fix: "Write it." });
  const errors: unknown[] = [];
  const failing: TrainerCallback = {
    id: "watcher",
    onSnapshot(_, snapshot) {
      if (snapshot.step === 0) throw wrong;
    },
    onError: (_, error) => void errors.push(error),
  };
  const measuring = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)] });
  const toy = toyTraining();
  expect(await withSession(toy.options([measuring, failing]), train(toy))).toBeNull();
  expect(errors).toEqual([wrong]);
  expect(toy.warnings().join()).toContain("onSnapshot threw at step 0: [periodic-eval] watcher: got a group");
});

it("warns of a hook that throws and continues training, even if its onError throws", async () => {
  const toy = toyTraining();
  const errors: unknown[] = [];
  const throwing: TrainerCallback = {
    id: "bad",
    onStepEnd({ progress }) {
      if (progress.step === 3) throw new Error("own mistake");
    },
    onError(_, error) {
      errors.push(error);
      throw new Error("again");
    },
  };
  expect(await withSession(toy.options([throwing]), train(toy))).toBeNull();
  expect(errors).toEqual([new Error("own mistake")]);
  expect(toy.warnings()).toEqual([
    'callback "bad": onStepEnd threw at step 3: own mistake',
    'callback "bad": onError threw: again',
  ]);
});

it("passes training's error to every callback, closes everything, and throws the error", async () => {
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

it("warns once of a logger that throws, and continues training", async () => {
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

it("reports an error of closing from a logger that failed before", async () => {
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
    'logger "broken": at close: 3 lost',
  ]);
});

it("throws for a step or epoch that falls, overlapping calls, and calls after close", async () => {
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

it("throws for a measurement requested after the end", async () => {
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
    ["more", "complete"], // requested on the ungraded snapshot, in the last window
    ["toy", "complete"],
  ]);
  expect(toy.warnings().join()).toContain('a request for "more" after the end of training');
});

it.each([
  ["big", 1n, "a bigint"],
  ["nats", [0, Number.NaN], "NaN"],
  ["scores", new Float32Array(2), "a Float32Array"],
  ["at", undefined, null],
] as const)(
  "fails a measurement with a row whose %s is %o, which JSON cannot hold",
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

it("fails a measurement with more rows than samplesPerItem: half of them would count as whole", async () => {
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

it.each(["w0", "q", "q00", "Q0", "q0x", "0#q0"])(
  "fails a measurement with a row of the id %j, which no item has",
  async (id) => {
    const toy = toyTraining();
    const evaluation = {
      ...toyEvaluation({ items: 2 }),
      measure: async () => [{ id, reply: "a", hit: true }],
    };
    const callback = new PeriodicCallback(evaluation, { schedule: [], atEnd: false });
    await withSession(toy.options([callback]), train(toy));
    const [snapshot] = await toy.store.list();
    expect(snapshot!.reason).toContain(`got a row with the id "${id}", which no item has`);
  },
);

it("keeps a partial snapshot if its repetition at the end fails", async () => {
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

it("keeps the previous state if a state throws or is not JSON, and continues training", async () => {
  const toy = toyTraining();
  const errors: unknown[] = [];
  let state: () => number = () => 1;
  const callback = {
    id: "counting",
    state: () => state(),
    onError: (_: unknown, error: unknown) => void errors.push(error),
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
  expect(errors.length).toBe(2);
  expect(toy.warnings()[0]).toBe(
    'callback "counting": state threw, and the checkpoint of step 0 holds the previous state: state broke',
  );
});

it("does not cross the end of an aborted phase, which a resumed run reaches", async () => {
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

it("throws for a wrong option when the session is opened, and names the nearest one", () => {
  const toy = toyTraining();
  const open = (changes: object) => () => openSession(toy.options([], changes));
  expect(open({ gaurds: [] })).toThrow('Did you mean "guards"?');
  expect(open({ maxSteps: Number.NaN })).toThrow("session options.maxSteps: got NaN");
  expect(open({ maxSteps: -1 })).toThrow("got -1");
  expect(open({ phase: "../x" })).toThrow("session options.phase");
  // The store keeps superseded snapshots in a folder of this name.
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
  expect(open({ callbacks: [{ id: "a" }, { id: "a" }] })).toThrow('got "a" twice');
  expect(open({ callbacks: [{ id: "a b" }] })).toThrow("callbacks[0].id");
});

it("keeps the checkpoint's state if a state throws after a resume", async () => {
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
  // The state was copied before the callback changed it.
  seen.losses.push(2);
  expect(resume.callbacks).toEqual({ losses: { losses: [1] } });
  await first.close();
  const second = openSession(toy.options([restoring(true)], { resume }));
  await second.stepEnd();
  expect((await second.save()).callbacks).toEqual({ losses: { losses: [1] } });
  await second.close();
});

it("checks every part of the state to resume from", () => {
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
  const measurement = {
    by: "a",
    evaluation: { name: "e", version: "1" },
    on: "model",
    plannedComparisons: null,
  };
  const crossed = [{ trigger: { every: 2, unit: "steps" }, at: 4 }];
  const interrupted = (changes: object) =>
    open({ ...state, interrupted: { a: { ...measurement, crossed, ...changes } } });
  const at = "resume.interrupted.a";
  expect(interrupted({})).not.toThrow();
  expect(interrupted({ by: 1 })).toThrow(`${at}.by: got 1`);
  expect(interrupted({ on: "models" })).toThrow(`${at}.on`);
  expect(interrupted({ evaluation: { name: "e" } })).toThrow(`${at}.evaluation`);
  expect(interrupted({ crossed: [{ trigger: { every: 2, unit: "stops" }, at: 4 }] })).toThrow(
    `${at}.crossed`,
  );
});

/** Returns the toy's weights after a number of steps from 0. */
function weightsAfter(steps: number): number {
  const toy = toyTraining();
  for (let step = 0; step < steps; step++) toy.step();
  return toy.weights;
}
