// Callbacks, evaluations and graders that pass wrong values, throw anything, or leave promises behind.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TrainerCallback, AnyEvaluation } from "@periodic-eval/contracts";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "./session.ts";
import { half, statuses, train } from "./toy-run.test-data.ts";

describe("what hooks and evaluations receive", () => {
  it("keeps its own progress when a hook replaces fields of its context", async () => {
    const toy = toyTraining();
    const faulty: TrainerCallback = {
      id: "faulty",
      onStepEnd: (context) => void Object.assign(context, { progress: null, metrics: { loss: -777 } }),
    };
    await withSession(toy.options([faulty, half(toyEvaluation())]), train(toy));
    expect(await statuses(toy)).toEqual(["toy 0 complete", "toy 5 complete", "toy 10 complete"]);
  });

  it.each([
    ["null", null],
    ["a string", { x: "1" }],
    ["a BigInt", { x: 1n }],
  ])("refuses a report of %s in the hook that makes it", async (_, reported) => {
    const toy = toyTraining();
    const logged: unknown[] = [];
    const logger = { name: "l", train: (metrics: object) => void logged.push(metrics) };
    const faulty: TrainerCallback = { id: "faulty", onStepEnd: ({ report }) => report(reported as never) };
    await withSession(toy.options([faulty], { loggers: [toy.logger, logger] }), async (session) => {
      await session.stepEnd();
    });
    expect(toy.warnings()[0]).toContain(
      'callback "faulty": onStepEnd threw at step 1: [periodic-eval] callback "faulty" report',
    );
    expect(logged).toEqual([]);
  });

  it.each([
    { crossed: 5 },
    { crossed: [null] },
    { evaluation: null },
    { plannedComparisons: "all" },
    { on: 1 },
  ])("refuses a request with %o in the hook that makes it", async (changes) => {
    const toy = toyTraining();
    const request = { id: "mine", evaluation: toyEvaluation(), crossed: [], ...changes };
    const faulty: TrainerCallback = { id: "faulty", onStepEnd: ({ measure }) => measure(request as never) };
    expect(await withSession(toy.options([faulty]), train(toy, 1))).toBeNull();
    expect(toy.warnings()[0]).toContain('callback "faulty": onStepEnd threw at step 1');
    expect(await statuses(toy)).toEqual([]);
  });
});

describe("what user code throws", () => {
  const thrown: readonly [string, unknown][] = [
    ["undefined", undefined],
    ["null", null],
    ["a symbol", Symbol("s")],
    ["an object without a prototype", Object.create(null)],
  ];
  it.each(thrown)("is a failed snapshot or a warning if it is %s", async (_, value) => {
    const toy = toyTraining();
    const fail = () => {
      throw value;
    };
    const faulty: TrainerCallback = {
      id: "faulty",
      onStepEnd: fail,
      onSnapshot: async () => fail(),
      onError: fail,
      state: fail,
      close: fail,
    };
    const measuring = half({ ...toyEvaluation(), measure: async () => fail() }, "measuring");
    const grading = half({ ...toyEvaluation({ graded: true }), grade: async () => fail() }, "grading");
    const scoring = half({ ...toyEvaluation(), metrics: fail }, "scoring");
    expect(
      await withSession(toy.options([faulty, measuring, grading, scoring]), async (session) => {
        const stop = await train(toy, 2)(session);
        await session.save();
        return stop;
      }),
    ).toBeNull();
    expect(await statuses(toy)).toEqual(
      [0, 2].flatMap((step) => ["grading", "measuring", "scoring"].map((id) => `${id} ${step} failed`)),
    );
    const text = toy.warnings().join("\n");
    for (const part of [
      "onStepEnd threw at step 1",
      "onSnapshot threw",
      "onError threw",
      "state threw",
      'callback "faulty": ',
    ])
      expect(text).toContain(part);
  });

  it('throws undefined and null from stepEnd too with onFailure "throw"', async () => {
    for (const value of [undefined, null]) {
      const toy = toyTraining();
      const faulty: TrainerCallback = {
        id: "faulty",
        onStepEnd() {
          throw value;
        },
      };
      const session = openSession(toy.options([faulty], { onFailure: "throw" }));
      let caught: unknown = "nothing";
      await session.stepEnd().catch((error: unknown) => (caught = error));
      expect(caught).toBe(value);
      await session.close();
    }
  });

  it("waits for an asynchronous state, and keeps the previous one if it rejects", async () => {
    const toy = toyTraining();
    let answer: () => Promise<number> = async () => 1;
    const faulty = { id: "faulty", state: () => answer() as never };
    await withSession(toy.options([faulty]), async (session) => {
      await session.begin();
      expect((await session.save()).callbacks).toEqual({ faulty: 1 });
      answer = () => Promise.reject(new Error("no disk"));
      expect((await session.save()).callbacks).toEqual({ faulty: 1 });
    });
    expect(toy.warnings()).toEqual([
      'callback "faulty": state threw, and the checkpoint of step 0 holds the previous state: no disk',
    ]);
  });
});

describe("a promise that nobody handles", () => {
  // vitest fails a run with unhandled rejections by a listener of its own.
  let foreign: (() => void)[] = [];
  beforeEach(() => {
    foreign = process.listeners("unhandledRejection" as "exit") as (() => void)[];
    for (const listener of foreign) process.off("unhandledRejection", listener);
  });
  afterEach(() => {
    for (const listener of foreign) process.on("unhandledRejection", listener);
  });
  const leave = () => void Promise.reject(new Error("late"));
  const turn = () => new Promise((resolve) => setTimeout(resolve, 5));
  const plain = toyEvaluation({ graded: true });
  const asking = (changes: Partial<AnyEvaluation>) => half({ ...plain, ...changes }, "leaves");
  const cases: readonly [string, () => TrainerCallback][] = [
    ["a hook", () => ({ id: "leaves", onStepEnd: leave })],
    ["a timer of a hook", () => ({ id: "leaves", onStepEnd: () => void setTimeout(leave, 1) })],
    ["measure", () => asking({ measure: (...given) => (leave(), plain.measure(...given)) })],
    ["grade", () => asking({ grade: async (...given) => (await turn(), leave(), plain.grade!(...given)) })],
  ];
  it.each(cases)("becomes one warning if %s leaves it while a phase is open", async (_, leaves) => {
    const toy = toyTraining();
    await withSession(toy.options([leaves(), half(toyEvaluation())]), async (session) => {
      await train(toy, 2)(session);
      await turn();
    });
    expect(toy.warnings()).toEqual([
      "session: a promise that nobody handles was rejected (reported once): late",
    ]);
    expect(await statuses(toy)).toEqual(expect.arrayContaining(["toy 0 complete", "toy 2 complete"]));
    expect(process.listenerCount("unhandledRejection")).toBe(0);
  });

  it("becomes one warning if a logger leaves one at every warning", async () => {
    const toy = toyTraining();
    const leaving = { name: "leaving", event: leave };
    const warns: TrainerCallback = { id: "warns", onStepEnd: ({ warn }) => warn("careful") };
    await withSession(toy.options([warns], { loggers: [leaving, toy.logger] }), async (session) => {
      await train(toy, 1)(session);
      await turn();
    });
    expect(toy.warnings()).toEqual([
      'callback "warns": careful',
      "session: a promise that nobody handles was rejected (reported once): late",
    ]);
  });

  it("is looked for from begin to close", async () => {
    const count = () => process.listenerCount("unhandledRejection");
    const toy = toyTraining();
    const session = openSession(toy.options([half(toyEvaluation())]));
    expect(count()).toBe(0);
    await session.begin();
    expect(count()).toBe(1);
    await session.close();
    expect(count()).toBe(0);
  });

  it('is thrown from the next call with onFailure "throw"', async () => {
    const toy = toyTraining();
    const session = openSession(toy.options([{ id: "leaves", onTrainBegin: leave }], { onFailure: "throw" }));
    await session.stepEnd();
    await turn();
    await expect(session.stepEnd()).rejects.toThrow("late");
    await session.close();
  });
});
