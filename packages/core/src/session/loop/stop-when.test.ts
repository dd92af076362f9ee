import { afterAll, describe, expect, it, test, vi } from "vitest";
import type {
  AnyEvaluation,
  MetricKit,
  Row,
  SessionOptions,
  SessionState,
  Snapshot,
  StopCondition,
  TrainerCallback,
} from "@periodic-eval/contracts";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { fileStore } from "@periodic-eval/store";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { defineEvaluation } from "../../evaluations/kit/define.ts";
import { everySteps } from "../../schedule/triggers.ts";
import { gate, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { openSession, withSession } from "./session.ts";

const folder = temporaryFolder(afterAll);
const items = 100;
/** Measures a hundred items after every step, of which `right[step]` are right. */
function quiz(right: readonly number[], grade?: () => Promise<void>, id = "quiz"): PeriodicCallback {
  let step = 0;
  const evaluation = defineEvaluation({
    name: id,
    version: "1",
    needs: ["generate"],
    items: () => Array.from({ length: items }, (_, i) => ({ id: `q${i}` })),
    async measure(_model, all) {
      const count = right[step++] ?? right.at(-1)!;
      return all.map((item, i) => ({ ...item, isRight: i < count, score: i < count ? 1 : (i % 7) / 100 }));
    },
    ...(grade && {
      async grade(
        rows: readonly { readonly id: string; readonly isRight: boolean; readonly score: number }[],
      ) {
        await grade();
        return rows;
      },
    }),
    metrics: ({ rate, mean }) => ({
      accuracy: rate(({ isRight }) => isRight, { higherIsBetter: true }),
      score: mean(({ score }) => score, {
        unit: "points",
        higherIsBetter: true,
        by: ({ id }) => `q${id.length === 2 ? "low" : "high"}`,
      }),
      size: mean(({ score }) => score),
      bounded: mean(({ score }) => score, { range: [0, 2] }),
    }),
  }) as AnyEvaluation;
  return new PeriodicCallback(evaluation, { id, schedule: [everySteps(1)] });
}

async function train(
  callbacks: readonly TrainerCallback[],
  stopWhen: readonly StopCondition[],
  more: Partial<SessionOptions> = {},
) {
  const toy = toyTraining();
  const options = { ...toy.options(callbacks, { maxSteps: 10 }), stopWhen, ...more };
  let stop: string | null = null;
  let step = options.resume?.progress.step ?? 0;
  const states: SessionState[] = [];
  await withSession(options, async (session) => {
    while (step < 10 && stop === null) {
      toy.step();
      step += 1;
      ({ stop } = await session.stepEnd({ step }));
      states.push(await session.save());
    }
  });
  return { stop, step, states, store: toy.store, warnings: toy.warnings() };
}

test("stops at the first measurement that is worse at a tenth of 5 %, and says why", async () => {
  // Of ten planned comparisons each has 0.5 %: 8 losses of 100 have p = 0.0078, and 12 have p = 0.0005.
  const { stop, step } = await train([quiz([80, 80, 72, 68])], ["quiz worse"]);
  expect(step).toBe(3);
  expect(stop).toBe(
    "quiz worse: quiz.accuracy is 68.0 % at step 3 (p = 0.00049, tested at 0.0050: 5 % split over the measurements)",
  );
});

test("splits the level over the conditions too", async () => {
  // 10 losses have p = 0.002, 12 have p = 0.0005: of 20 conditions each has 0.00025.
  const many = Array.from({ length: 19 }, (_, at) => `quiz.score < 0.0${at + 10} points`);
  const found = await train([quiz([80, 70, 60])], ["quiz worse", ...many]);
  expect(found.step).toBe(2);
  expect((await train([quiz([80, 70, 60])], ["quiz worse"])).step).toBe(1);
  expect(found.stop).toContain("and over 20 conditions, stricter than the page");
});

test("stops for a limit when the answers show that the value is beyond it", async () => {
  // 30 of 100 right: P(X ≤ 30 | 0.4) = 0.025; 25 right: 0.0012.
  const limit = await train([quiz([60, 30, 25])], ["quiz.accuracy < 40 %"]);
  expect(limit.step).toBe(2);
  const mean = await train([quiz([60, 45, 10])], ["quiz.score < 0.4 points"]);
  expect(mean.step).toBe(2);
});

test("does not stop when another direction is meant, or nothing was compared", async () => {
  expect((await train([quiz([80, 99, 20])], ["quiz better"])).step).toBe(1);
  expect((await train([quiz([80, 80, 99])], ["quiz worse"])).stop).toBeNull();
  expect((await train([quiz([80, 79])], ["quiz changed"])).stop).toBeNull();
});

test("cannot test a verdict without a baseline, and warns once; a limit needs none", async () => {
  const unstarted = (right: readonly number[]) => {
    const [evaluation] = quiz(right).asks;
    return new PeriodicCallback(evaluation!, { id: "quiz", schedule: [everySteps(1)], atStart: false });
  };
  const toy = toyTraining();
  const options = { ...toy.options([unstarted([80, 20])], { maxSteps: 10 }), stopWhen: ["quiz worse"] };
  await withSession(options, async (session) => {
    for (let step = 1; step <= 4; step++) {
      toy.step();
      expect((await session.stepEnd({ step })).stop).toBeNull();
    }
    expect(session.cleanStep).toBe(0);
  });
  expect(toy.warnings().filter((line) => line.includes("cannot be tested"))).toEqual([
    'stopWhen[0]: "quiz worse" cannot be tested at step 1: "quiz" is not compared with a baseline',
  ]);
  expect((await train([unstarted([60, 10])], ["quiz.accuracy < 40 %"])).step).toBe(2);
  const unknown = toyTraining();
  const stopWhen = ["quiz.score/low < 1 points"];
  const ofGroup = { ...unknown.options([unstarted([80])], { maxSteps: 10 }), stopWhen };
  await withSession(ofGroup, async (session) => {
    for (let step = 1; step <= 3; step++) await session.stepEnd({ step });
  });
  expect(unknown.warnings().filter((line) => line.includes("cannot be tested"))).toEqual([
    'stopWhen[0]: "quiz.score/low < 1 points" cannot be tested at step 1: got "quiz.score/low", which cannot be tested, expected a group of quiz.score: qlow, qhigh. Did you mean "quiz.score/qlow"?',
  ]);
});

it("does not warn of a group that a partial measurement lacks", async () => {
  const callback = quiz([80, 80, 0]);
  const evaluation = callback.asks[0]!;
  const { measure } = evaluation;
  let count = 0;
  Object.assign(evaluation, {
    async measure(...args: Parameters<typeof measure>) {
      const rows = await measure.apply(evaluation, args);
      // The first ten rows are the group.
      return count++ === 1 ? rows.slice(10) : rows;
    },
  });
  const { store, step, warnings } = await train([callback], ["quiz.score/qlow worse"]);
  expect((await store.list()).map(({ status }) => status)).toEqual(["complete", "partial", "complete"]);
  expect(step).toBe(2);
  expect(warnings.filter((line) => line.includes("cannot be tested"))).toEqual([]);
});

test("decides by constant values how many others would be needed", async () => {
  const constant = defineEvaluation({
    name: "bits",
    version: "1",
    needs: ["generate"],
    items: () => Array.from({ length: 10 }, (_, i) => ({ id: `q${i}` })),
    measure: async (_model, all) => all.map((item) => ({ ...item, bits: 6 })),
    metrics: ({ mean }) => ({ exposure: mean(({ bits }) => bits, { unit: "bits", range: [0, 6] }) }),
  }) as AnyEvaluation;
  const callback = new PeriodicCallback(constant, { id: "bits", schedule: [everySteps(1)] });
  // (1 − 4/6)^10 = 1.7e-5; (1 − 1/6)^10 = 0.16.
  const start = (limit: number) =>
    train([callback], [{ when: `bits.exposure > ${limit} bits`, evenAtStart: true }]);
  expect((await start(2)).stop).toContain("(p < 0.0001");
  expect((await start(5)).stop).toBeNull();
});

test("takes a snapshot that meets a new condition for evidence, not for clean", async () => {
  const run = `${folder}/new-condition`;
  const { states } = await train([quiz([80, 60, 60, 60])], [], { run });
  const again = await train([quiz([30])], ["quiz.accuracy < 90 %"], { run, resume: states[2]! });
  expect(again.stop).not.toBeNull();
  const { stop } = (await fileStore(run).closings!()).at(-1)!;
  expect(stop).toMatchObject({ measuredAt: 4, cleanStep: 0 });
});

test("tests the verdict of a slow judge between two steps, without a hook", async () => {
  const verdict = gate();
  const toy = toyTraining();
  let count = 0;
  const slow = quiz([80, 80, 60], () => (count++ < 2 ? Promise.resolve() : verdict.passed));
  const heard: number[] = [];
  const listener = { id: "listener", onSnapshot: (_: unknown, one: Snapshot) => void heard.push(one.step) };
  const stopWhen = ["quiz worse"];
  const options = { ...toy.options([slow, listener], { maxSteps: 9 }), stopWhen };
  const early = openSession(options);
  await expect(early.testConditions()).rejects.toThrow("a call before begin");
  await early.close();
  await withSession(options, async (session) => {
    for (let step = 1; step <= 2; step++) {
      toy.step();
      await session.stepEnd({ step });
    }
    await session.testConditions();
    expect(session.conditionStop).toBeNull();
    verdict.open();
    const before = heard.length;
    await vi.waitFor(async () => {
      await session.testConditions();
      expect(session.conditionStop).toMatchObject({ step: 2, measuredAt: 2, cleanStep: 1 });
    }, 10_000);
    expect(heard).toHaveLength(before);
    expect((await session.stepEnd({ step: 3 })).stop).toContain("quiz worse");
    expect(heard.length).toBeGreaterThan(before);
  });
});

test("ends with the verdict that a slow judge gives after the last step", async () => {
  const verdict = gate();
  const toy = toyTraining();
  let count = 0;
  const slow = quiz([80, 80, 60], () => (count++ < 2 ? Promise.resolve() : verdict.passed));
  const options = { ...toy.options([slow], { maxSteps: 2 }), stopWhen: ["quiz worse"] };
  await withSession(options, async (session) => {
    for (let step = 1; step <= 2; step++) {
      toy.step();
      await session.stepEnd({ step });
    }
    setTimeout(() => verdict.open(), 50);
    expect((await session.end()).stop).toContain("quiz worse");
    expect(session.conditionStop).toMatchObject({ measuredAt: 2, cleanStep: 1 });
  });
});

test("passes the condition to the loggers at the end of the phase", async () => {
  const ends: unknown[] = [];
  const logger = { name: "ends", end: (at: unknown) => void ends.push(at) };
  await train([quiz([60, 20])], ["quiz.accuracy < 40 %"], { loggers: [logger] });
  expect(ends).toMatchObject([{ finished: true, stop: { condition: "quiz.accuracy < 40 %" } }]);
});

describe("a condition of a callback", () => {
  const location = { where: "periodic_eval", path: ["escalate", 0, "when"] };
  const condition = { text: "quiz.score/qlo worse", id: "quiz", metric: "score/qlo", location };
  const reacting = { id: "escalate", asks: [], conditions: [condition] };
  const message =
    'got "quiz.score/qlo", which cannot be tested, expected a group of quiz.score: qlow, qhigh. Did you mean "quiz.score/qlow"?';

  it("is refused before step 1 if the start does not have its group, also when a judge is slow", async () => {
    const slow = quiz([80], () => new Promise((resolve) => setTimeout(resolve, 50)));
    await expect(train([slow, reacting], [])).rejects.toThrow(`periodic_eval.escalate[0].when: ${message}`);
  });

  it("is a warning, once, if no start was measured", async () => {
    const evaluation = quiz([80]).asks[0]!;
    const late = new PeriodicCallback(evaluation, {
      id: "quiz",
      schedule: [everySteps(1)],
      atStart: false,
    });
    const { step, warnings } = await train([late, reacting], []);
    expect(step).toBe(10);
    expect(warnings.filter((line) => line.includes("cannot be tested"))).toEqual([
      `escalate[0].when: "quiz.score/qlo worse" cannot be tested at step 1: ${message}`,
    ]);
  });
});

describe("before step 1", () => {
  it("waits for a judge of the start, and refuses a limit that the start is beyond", async () => {
    const slow = quiz([10], () => new Promise((resolve) => setTimeout(resolve, 50)));
    await expect(train([slow], ["quiz.accuracy < 40 %"])).rejects.toThrow("holds before step 1");
  });

  it("stops a later phase instead: its start is trained already", async () => {
    const toy = toyTraining();
    const phase = (name: string, right: readonly number[]) => ({
      ...toy.options([quiz(right)], { maxSteps: 2 }),
      phase: name,
      stopWhen: ["quiz.accuracy < 50 %"],
    });
    await withSession(phase("one", [60, 60, 36]), async (session) => {
      for (let step = 1; step <= 2; step++) await session.stepEnd({ step });
    });
    const stop = await withSession(phase("two", [20]), async (session) => (await session.begin()).stop);
    expect(stop).toContain("quiz.accuracy is 20.0 % at step 0");
  });

  it("is an error, and no warning, if a condition holds there", async () => {
    const log = toyTraining();
    const loggers = { loggers: [log.logger] };
    const error: unknown = await train([quiz([10])], ["quiz worse", "quiz.accuracy < 40 %"], loggers).catch(
      (one) => one,
    );
    // The program that trains gets the error.
    expect(log.warnings()).toEqual([]);
    expect(error).toBeInstanceOf(PeriodicEvalError);
    expect(error).toMatchObject({
      path: ["stopWhen", 1],
      got: expect.stringContaining(
        "holds before step 1 (quiz.accuracy < 40 %: quiz.accuracy is 10.0 % at step 0",
      ),
      fix: expect.stringContaining('{ when: "quiz.accuracy < 40 %", evenAtStart: true }'),
    });
  });

  it("ends training there if the condition says so", async () => {
    const toy = toyTraining();
    const stopWhen = [{ when: "quiz.accuracy < 40 %", evenAtStart: true }];
    const options = { ...toy.options([quiz([10])], { maxSteps: 10 }), stopWhen };
    const stop = await withSession(options, async (session) => (await session.begin()).stop);
    expect(stop).toContain("quiz.accuracy is 10.0 % at step 0");
  });

  it("waits for a judge of the start, and refuses a group that the start does not have", async () => {
    const slow = quiz([80], () => new Promise((resolve) => setTimeout(resolve, 50)));
    await expect(train([slow], ["quiz changed", "quiz.score/qlo worse"])).rejects.toThrow(
      'session options.stopWhen[1]: got "quiz.score/qlo", which cannot be tested, expected a group of quiz.score: qlow, qhigh. Did you mean "quiz.score/qlow"?',
    );
    // 10 rows of q0 … q9: 8 right, then none.
    expect((await train([quiz([80, 80, 0])], ["quiz.score/qlow worse"])).step).toBe(2);
  });

  it("refuses a group of a metric whose rows are in no group", async () => {
    const callback = quiz([80]);
    const metrics = ({ mean }: MetricKit<Row & { readonly score: number }>) => ({
      score: mean(({ score }) => score, { unit: "points", higherIsBetter: true, by: () => null }),
    });
    Object.assign(callback.asks[0]!, { metrics });
    await expect(train([callback], ["quiz.score/qlow worse"])).rejects.toThrow(
      'got "quiz.score/qlow", which cannot be tested, expected a metric with groups, and the rows of quiz.score are in no group. Write "quiz.score".',
    );
  });

  it("refuses a condition twice", async () => {
    const limits = ["quiz.accuracy < 40 %", " quiz.accuracy<40.0%"];
    for (const conditions of [["quiz worse", " quiz  worse"], ["quiz worse", "quiz.accuracy worse"], limits])
      await expect(train([quiz([80])], conditions)).rejects.toThrow("each condition once");
    const location = { where: "periodic_eval", path: ["stop_when", 1] };
    const placed = limits.map((when) => ({ when, location }));
    await expect(train([quiz([80])], placed)).rejects.toThrow(
      'periodic_eval.stop_when[1]: got "quiz.accuracy < 40 %"',
    );
  });

  it.each<[string, StopCondition, string]>([
    ["no condition", "quiz", 'stopWhen[0]: got "quiz", expected NAME better'],
    ["an unknown evaluation", "quizz worse", 'Did you mean "quiz"?'],
    [
      "an unknown metric",
      "quiz.acuracy worse",
      'expected a metric of quiz: accuracy, score, size, bounded. Did you mean "accuracy"?',
    ],
    ["a group of a metric without groups", "quiz.accuracy/qlow worse", 'Write "quiz.accuracy".'],
    ["a metric without a direction", "quiz.size worse", 'expected "quiz.size changed"'],
    ["another unit", "quiz.accuracy < 0.4", 'got a limit without a unit, expected "quiz.accuracy < 0.4 %"'],
    [
      "a limit beyond the metric's range",
      "quiz.bounded > 9",
      "got a limit of 9, expected a limit between 0 and 2",
    ],
    ["a limit that no share is beyond", "quiz.accuracy < 140 %", "expected a limit between 0 % and 100 %"],
    ["an unknown option", { when: "quiz worse", atStart: true } as never, "atStart"],
    [
      "a location that is a string",
      { when: "quiz worse", location: "stop.yaml:3" } as never,
      'stopWhen[0].location: got "stop.yaml:3", expected an object (where, path).',
    ],
  ])("refuses %s", async (_, condition, message) => {
    await expect(train([quiz([80])], [condition])).rejects.toThrow(message);
  });
});

it("counts a measurement that cannot be judged as neither clean nor evidence", async () => {
  // Of 100 items none can be judged at steps 1 and 2, and 40 are wrong at step 3.
  const callback = quiz([80, 80, 80, 40]);
  const [evaluation] = callback.asks;
  let count = 0;
  const warning = { kind: "empty", metrics: null, count: 100, total: 100, message: "All empty." };
  Object.assign(evaluation!, {
    warnings: (rows: readonly unknown[]) => {
      if (rows.length > 0) count += 1;
      return rows.length > 0 && [2, 3].includes(count) ? [{ ...warning, void: true }] : [];
    },
  });
  const run = `${folder}/void`;
  const { step } = await train([callback], ["quiz worse"], { run });
  expect(step).toBe(3);
  expect((await fileStore(run).closings!()).at(-1)!.stop).toMatchObject({ measuredAt: 3, cleanStep: 0 });
});

describe("a run that is killed", () => {
  const stopOf = async (run: string) => (await fileStore(run).closings!()).at(-1)!.stop;

  it("stops at the same step after a resume from any checkpoint before it", async () => {
    const right = [80, 80, 80, 60];
    const whole = `${folder}/whole`;
    const { states, step } = await train([quiz(right)], ["quiz worse"], { run: whole });
    expect(step).toBe(3);
    expect(await stopOf(whole)).toMatchObject({
      condition: "quiz worse",
      step: 3,
      measuredAt: 3,
      cleanStep: 2,
    });
    for (const [at, resume] of states.slice(0, 2).entries()) {
      const again = await train([quiz(right.slice(at + 2))], ["quiz worse"], { run: whole, resume });
      expect([again.step, again.stop]).toEqual([3, expect.stringContaining("at step 3")]);
    }
  });

  it("stops where the verdict arrived, though the measurement was earlier and is graded already", async () => {
    const run = `${folder}/late`;
    const verdict = gate();
    const toy = toyTraining();
    const right = [80, 80, 60];
    let count = 0;
    const graded = quiz(right, () => (count++ < 2 ? Promise.resolve() : verdict.passed));
    const stopWhen = ["quiz worse"];
    let saved: SessionState | undefined;
    const options = { ...toy.options([graded], { maxSteps: 10 }), run, stopWhen };
    const stopped = await withSession(options, async (session) => {
      for (let step = 1; step <= 10; step++) {
        toy.step();
        if (step === 5) {
          verdict.open();
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        const { stop } = await session.stepEnd({ step });
        if (stop !== null) return step;
        if (step === 3) saved = await session.save();
      }
      return null;
    });
    expect(stopped).toBe(5);
    expect(await stopOf(run)).toMatchObject({ step: 5, measuredAt: 2, cleanStep: 1 });
    const again = await train([quiz([60])], stopWhen, { run, resume: saved! });
    expect(again.step).toBe(5);
  });

  it("goes on if the condition was removed", async () => {
    const run = `${folder}/removed`;
    const { states } = await train([quiz([80, 80, 60])], ["quiz worse"], { run });
    const again = await train([quiz([60])], [], { run, resume: states[1]! });
    expect([again.step, again.stop]).toEqual([10, null]);
  });
});
