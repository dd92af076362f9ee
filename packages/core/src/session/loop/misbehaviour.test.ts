// Callbacks, evaluations and graders that write into what they receive, throw anything, or leave promises behind.
import { createReadStream } from "node:fs";
import * as tf from "@tensorflow/tfjs-core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CallbackContext, TrainerCallback } from "../../contracts/callback.ts";
import type { AnyEvaluation } from "../../contracts/evaluation.ts";
import { toyEvaluation, toyTraining } from "../../testing/toy-training.ts";
import { openSession, withSession } from "./session.ts";
import { half, statuses, train } from "./toy-run.test-data.ts";

describe("what hooks and evaluations receive", () => {
  const writes: readonly [string, (context: CallbackContext) => void][] = [
    ["progress.maxSteps", ({ progress }) => ((progress as { maxSteps: number }).maxSteps = 1000)],
    ["progress.step", ({ progress }) => ((progress as { step: number }).step = 0)],
    ["progress.furthest", ({ progress }) => ((progress.furthest as { step: number }).step = 99)],
    ["previous.step", ({ previous }) => ((previous as { step: number }).step = 99)],
    ["metrics.loss", ({ metrics }) => ((metrics as { loss: number }).loss = -777)],
    ["a new metric", ({ metrics }) => ((metrics as { mine: number }).mine = 1)],
    ["deleting a metric", ({ metrics }) => delete (metrics as { loss?: number }).loss],
  ];
  it.each(writes)(
    "throws in a hook that writes %s, and measures and logs as without it",
    async (_, write) => {
      const toy = toyTraining();
      const logged: unknown[] = [];
      const logger = { name: "l", train: (metrics: object) => void logged.push({ ...metrics }) };
      const evil: TrainerCallback = { id: "evil", onStepEnd: (context) => write(context) };
      const callbacks = [evil, half(toyEvaluation())];
      await withSession(toy.options(callbacks, { loggers: [logger, toy.logger] }), train(toy));
      expect(await statuses(toy)).toEqual(["toy 0 complete", "toy 5 complete", "toy 10 complete"]);
      expect(logged).toEqual(Array.from({ length: 10 }, (_, loss) => ({ loss })));
      expect(toy.warnings()[0]).toMatch(/callback "evil": onStepEnd threw at step [12]: Cannot/);
    },
  );

  it("keeps its own progress when a hook replaces fields of its context", async () => {
    const toy = toyTraining();
    const evil: TrainerCallback = {
      id: "evil",
      onStepEnd: (context) => void Object.assign(context, { progress: null, metrics: { loss: -777 } }),
    };
    await withSession(toy.options([evil, half(toyEvaluation())]), train(toy));
    expect(await statuses(toy)).toEqual(["toy 0 complete", "toy 5 complete", "toy 10 complete"]);
  });

  it.each([
    ["loses its prototype", (signal: AbortSignal) => void Object.setPrototypeOf(signal, null)],
    ["is said to be aborted", (signal: AbortSignal) => void signal.dispatchEvent(new Event("abort"))],
  ])("measures as without a hook whose signal %s, and still aborts the others'", async (_, spoil) => {
    const toy = toyTraining();
    const abort = new AbortController();
    const seen: boolean[] = [];
    const evil: TrainerCallback = { id: "evil", onTrainBegin: ({ signal }) => spoil(signal) };
    const other: TrainerCallback = {
      id: "other",
      onTrainEnd: ({ signal }) => void seen.push(signal.aborted),
    };
    const options = toy.options([evil, other, half(toyEvaluation())], { signal: abort.signal });
    await withSession(options, async (session) => {
      await train(toy, 5)(session);
      abort.abort();
    });
    expect(await statuses(toy)).toEqual(["toy 0 complete", "toy 5 complete"]);
    expect(seen).toEqual([true]);
  });

  it("freezes snapshots and rows for hooks, and leaves the loop's own metrics writable", async () => {
    const toy = toyTraining();
    const seen: unknown[] = [];
    const metrics = { loss: 1 };
    const evil: TrainerCallback = {
      id: "evil",
      async onSnapshot({ rows }, snapshot) {
        const [row] = await rows(snapshot);
        seen.push(Object.isFrozen(row), Object.isFrozen(snapshot.metrics["hit_rate"]));
        (snapshot as { status: string }).status = "failed";
      },
    };
    await withSession(toy.options([evil, half(toyEvaluation())]), async (session) => {
      await session.stepEnd({ metrics });
      metrics.loss = 2;
    });
    expect(seen).toEqual([true, true, true, true]);
    expect(await statuses(toy)).toEqual(["toy 0 complete", "toy 1 complete"]);
    expect(toy.warnings()[0]).toContain('callback "evil": onSnapshot threw');
  });

  it("ignores what a hook writes into requests and reports after it made them", async () => {
    const toy = toyTraining();
    const logged: unknown[] = [];
    const logger = { name: "l", train: (metrics: object) => void logged.push(metrics) };
    const evil: TrainerCallback = {
      id: "evil",
      onTrainBegin({ measure, report }) {
        const crossed = [{ trigger: { at: "start" as const }, at: 0 }];
        const numbers = { x: 1 };
        measure({ id: "mine", evaluation: toyEvaluation(), crossed });
        report(numbers);
        crossed.length = 0;
        numbers.x = Number.NaN;
      },
    };
    await withSession(toy.options([evil], { loggers: [logger] }), train(toy, 0));
    expect((await toy.store.list())[0]).toMatchObject({ id: "mine", crossed: ["start"] });
    expect(logged).toEqual([{ x: 1 }]);
  });

  it.each([
    ["null", null],
    ["a string", { x: "1" }],
    ["a BigInt", { x: 1n }],
  ])("refuses a report of %s in the hook that makes it", async (_, reported) => {
    const toy = toyTraining();
    const logged: unknown[] = [];
    const logger = { name: "l", train: (metrics: object) => void logged.push(metrics) };
    const evil: TrainerCallback = { id: "evil", onStepEnd: ({ report }) => report(reported as never) };
    await withSession(toy.options([evil], { loggers: [toy.logger, logger] }), async (session) => {
      await session.stepEnd();
    });
    expect(toy.warnings()[0]).toContain(
      'callback "evil": onStepEnd threw at step 1: [periodic-eval] callback "evil" report',
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
    const evil: TrainerCallback = { id: "evil", onStepEnd: ({ measure }) => measure(request as never) };
    expect(await withSession(toy.options([evil]), train(toy, 1))).toBeNull();
    expect(toy.warnings()[0]).toContain('callback "evil": onStepEnd threw at step 1');
    expect(await statuses(toy)).toEqual([]);
  });

  it.each(["items", "rows", "provenance"])(
    "measures the same after an evaluation writes into its %s",
    async (what) => {
      const toy = toyTraining();
      const plain = toyEvaluation({ graded: true });
      const given = { items: 8 };
      const questions = Array.from({ length: 8 }, (_, i) => ({ id: `q${i}`, text: `question ${i}` }));
      const evil: AnyEvaluation = {
        ...plain,
        items: () => questions,
        provenance: () => given,
        async measure(model: never, items: { text: string }[], context) {
          const rows = await plain.measure(model, items, context);
          if (what === "items") items[0]!.text = "another question";
          return rows;
        },
        async grade(rows: { reply: string }[], context) {
          if (what === "provenance") given.items = 9;
          if (what === "rows") rows[0]!.reply = "z";
          return plain.grade!(rows, context);
        },
      };
      await withSession(toy.options([half(evil)]), train(toy));
      const [first, ...rest] = await toy.store.list();
      if (what === "provenance") return expect(first!.provenance.evaluation).toEqual({ items: 8 });
      expect(first).toMatchObject({ status: "failed" });
      expect(first!.reason).toContain("Cannot assign to read only property");
      expect(rest.map(({ provenance }) => provenance.items_hash)).toEqual(
        rest.map(() => first!.provenance.items_hash),
      );
    },
  );
});

describe("what user code throws", () => {
  const refuse = () => {
    throw new Error("trap");
  };
  const traps = Object.fromEntries(Object.getOwnPropertyNames(Reflect).map((trap) => [trap, refuse]));
  const thrown: readonly [string, unknown][] = [
    ["undefined", undefined],
    ["null", null],
    ["a symbol", Symbol("s")],
    ["an object without a prototype", Object.create(null)],
    ["a proxy that throws on every trap", new Proxy({}, traps)],
    ["an object whose toString throws", { toString: refuse }],
  ];
  it.each(thrown)("is a failed snapshot or a warning if it is %s", async (_, value) => {
    const toy = toyTraining();
    const fail = () => {
      throw value;
    };
    const evil: TrainerCallback = {
      id: "evil",
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
      await withSession(toy.options([evil, measuring, grading, scoring]), async (session) => {
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
      'callback "evil": ',
    ])
      expect(text).toContain(part);
  });

  it('throws undefined and null from stepEnd too with onFailure "throw"', async () => {
    for (const value of [undefined, null]) {
      const toy = toyTraining();
      const evil: TrainerCallback = {
        id: "evil",
        onStepEnd() {
          throw value;
        },
      };
      const session = openSession(toy.options([evil], { onFailure: "throw" }));
      let caught: unknown = "nothing";
      await session.stepEnd().catch((error: unknown) => (caught = error));
      expect(caught).toBe(value);
      await session.close();
    }
  });

  it("waits for an asynchronous state, and keeps the previous one if it rejects", async () => {
    const toy = toyTraining();
    let answer: () => Promise<number> = async () => 1;
    const evil = { id: "evil", state: () => answer() as never };
    await withSession(toy.options([evil]), async (session) => {
      await session.begin();
      expect((await session.save()).callbacks).toEqual({ evil: 1 });
      answer = () => Promise.reject(new Error("no disk"));
      expect((await session.save()).callbacks).toEqual({ evil: 1 });
    });
    expect(toy.warnings()).toEqual([
      'callback "evil": state threw, and the checkpoint of step 0 holds the previous state: no disk',
    ]);
  });
});

describe("a promise that user code left behind", () => {
  // vitest fails a run with unhandled rejections by a listener of its own.
  const events = ["unhandledRejection", "uncaughtException"] as const;
  const foreign: [(typeof events)[number], () => void][] = [];
  const isOwn = ({ name }: { name: string }) => name === "report" || name === "reportThrown";
  beforeEach(() => {
    for (const event of events) {
      const others = process.listeners(event as "exit").filter((listener) => !isOwn(listener));
      foreign.push(...others.map((one): [typeof event, () => void] => [event, one as () => void]));
    }
    for (const [event, listener] of foreign) process.off(event, listener);
  });
  afterEach(() => {
    for (const [event, listener] of foreign.splice(0)) process.on(event, listener);
  });
  const leave = () => void Promise.reject(new Error("late"));
  const leaveLater = () => void setTimeout(leave, 1);
  const turn = () => new Promise((resolve) => setTimeout(resolve, 5));
  const asking = (changes: Partial<AnyEvaluation>) =>
    half({ ...toyEvaluation({ graded: true }), ...changes }, "evil");
  const plain = toyEvaluation({ graded: true });
  const cases: readonly [string, () => TrainerCallback][] = [
    ["a hook", () => ({ id: "evil", onStepEnd: leave })],
    ["a timer of a hook", () => ({ id: "evil", onStepEnd: leaveLater })],
    ["an asynchronous hook", () => ({ id: "evil", onStepEnd: async () => Promise.resolve().then(leave) })],
    ["onSnapshot", () => ({ id: "evil", onSnapshot: leave })],
    ["state", () => ({ id: "evil", state: () => (leave(), 1) })],
    ["close", () => ({ id: "evil", close: leave })],
    ["items", () => asking({ items: () => (leave(), plain.items(null as never)) })],
    ["check", () => asking({ check: async () => leave() })],
    ["measure", () => asking({ measure: (...given) => (leave(), plain.measure(...given)) })],
    ["grade", () => asking({ grade: async (...given) => (await turn(), leave(), plain.grade!(...given)) })],
    ["metrics", () => asking({ metrics: (kit) => (leave(), plain.metrics(kit)) })],
    ["provenance", () => asking({ provenance: () => (leave(), null) })],
  ];
  it.each(cases)("by %s becomes a warning of its callback when it rejects", async (_, evil) => {
    const toy = toyTraining();
    await withSession(toy.options([evil(), half(toyEvaluation())]), async (session) => {
      await train(toy, 1)(session);
      await session.save();
      await turn();
    });
    await turn();
    expect(toy.warnings()).toContain('callback "evil": a promise that it left behind was rejected: late');
    expect(await statuses(toy)).toEqual(expect.arrayContaining(["toy 0 complete", "toy 1 complete"]));
  });

  const throwing = () => {
    throw new Error("late");
  };
  it.each([
    ["a timer", "timer, event or stream", () => void setTimeout(throwing, 1)],
    ["process.nextTick", "timer, event or stream", () => process.nextTick(throwing)],
    ["setImmediate", "timer, event or stream", () => void setImmediate(throwing)],
    ["queueMicrotask", "microtask", () => queueMicrotask(throwing)],
    [
      "a stream without a listener for errors",
      "timer, event or stream",
      () => void createReadStream("/nowhere/at/all"),
    ],
  ])("whose work in %s throws becomes a warning of its callback", async (_, kind, leaveWork) => {
    const toy = toyTraining();
    const evil: TrainerCallback = { id: "evil", onTrainBegin: leaveWork };
    await withSession(toy.options([evil, half(toyEvaluation())]), async (session) => {
      await train(toy, 1)(session);
      await turn();
    });
    await vi.waitFor(() => expect(toy.warnings().length).toBe(1), 60_000);
    const warning = `^callback "evil": a ${kind} that it left behind threw: (late|ENOENT)`;
    expect(toy.warnings()[0]).toMatch(new RegExp(warning));
    expect(await statuses(toy)).toEqual(["toy 0 complete", "toy 1 complete"]);
  });

  it.each([
    ["a promise", "a promise that it left behind was rejected", leave],
    ["a timer", "a timer, event or stream that it left behind threw", () => void setTimeout(throwing, 0)],
  ])("is a warning of its logger if it is %s of a logger", async (_, text, leaveWork) => {
    const toy = toyTraining();
    const logger = { name: "mine", train: () => leaveWork() };
    await withSession(toy.options([], { loggers: [toy.logger, logger] }), async (session) => {
      await train(toy, 1)(session);
      await turn();
    });
    expect(toy.warnings()).toEqual([`logger "mine": ${text} (reported once): late`]);
  });

  it("is still reported after a hook removed all listeners of the process", async () => {
    const toy = toyTraining();
    const evil: TrainerCallback = {
      id: "evil",
      onTrainBegin: () => void process.removeAllListeners("unhandledRejection"),
      onStepEnd: leave,
    };
    await withSession(toy.options([evil]), train(toy, 1));
    await turn();
    expect(toy.warnings()).toEqual(['callback "evil": a promise that it left behind was rejected: late']);
  });

  it("is a warning also where the program started the wasm backend, whose listeners end the process", async () => {
    await import("@tensorflow/tfjs-backend-wasm");
    await tf.setBackend("wasm");
    const toy = toyTraining();
    const evil: TrainerCallback = { id: "evil", onStepEnd: leave };
    await withSession(toy.options([evil]), train(toy, 1));
    await turn();
    expect(toy.warnings()).toEqual(['callback "evil": a promise that it left behind was rejected: late']);
  });

  it("draws from a separate Math.random", async () => {
    const trainWith = async (callbacks: readonly TrainerCallback[]) => {
      const toy = toyTraining();
      const native = Math.random;
      let drawn = 0;
      Math.random = () => ++drawn;
      try {
        return await withSession(toy.options(callbacks), async (session) => {
          const numbers: number[] = [];
          for (let step = 0; step < 3; step++) {
            numbers.push(Math.random());
            await session.stepEnd();
            await turn();
          }
          return numbers;
        });
      } finally {
        Math.random = native;
      }
    };
    const draw = () => void Math.random();
    const graded = toyEvaluation({ graded: true, onGrade: async () => (await turn(), draw()) });
    const evil: TrainerCallback = { id: "evil", onStepEnd: () => void setTimeout(draw, 0) };
    expect(await trainWith([evil, half(graded)])).toEqual(await trainWith([]));
  });

  it("by the training loop still ends the process", async () => {
    const toy = toyTraining();
    await withSession(toy.options([{ id: "a", onStepEnd() {} }]), train(toy, 1));
    const report = process.listeners("unhandledRejection").find(({ name }) => name === "report")!;
    const own = new Error("own");
    expect(() => report(own, Promise.resolve())).toThrow(own);
  });
});
