import {
  measure,
  withSession,
  type Json,
  type Logger,
  type SessionOptions,
  type Snapshot,
} from "@periodic-eval/core";
import { callbackConformance, exampleSnapshot, fakeModel, memoryStore } from "@periodic-eval/testing";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { benchmarkFolder } from "./benchmark-folder.test-data.ts";
import { benchmarkEvaluation } from "./benchmark-evaluation.ts";
import { BenchmarkEvaluator, type BenchmarkEvaluatorOptions } from "./benchmark-evaluator.ts";
import type { BenchmarkStore } from "./stores/store.ts";

const tasks = [1, 2, 3, 4].map((n) => ({
  id: `sum-${n}`,
  prompt: `${n} + ${n} =`,
  answer: 2 * n,
  split: n < 4 ? "val" : "test",
  verifier: "numeric",
}));

/** Returns a store that records the values that it receives, in order. */
function keeping() {
  const kept: [name: string, value: Json][] = [];
  const store: BenchmarkStore = { name: "kept", put: async (name, value) => void kept.push([name, value]) };
  return { store, kept };
}

/** A phase of four steps. At step n the model adds numbers up to n correctly. */
async function trained(
  evaluator: BenchmarkEvaluator,
  options: Partial<SessionOptions> = {},
  afterStep: (step: number) => Promise<void> = async () => {},
) {
  let step = 0;
  const store = memoryStore();
  const warnings: string[] = [];
  const logger: Logger = {
    name: "test",
    event: (event) => void (event.kind === "warning" && warnings.push(`${event.where}: ${event.message}`)),
  };
  const model = fakeModel({
    reply: (prompt) => String(Math.min(step, Number(/(\d) \+/.exec(prompt)![1])) * 2),
  });
  const session = { run: store, maxSteps: 4, model, callbacks: [evaluator], loggers: [logger] };
  await withSession({ ...session, budget: { overheadPercent: null }, ...options }, async (open) => {
    await open.begin();
    for (step = 1; step <= 4; step++) {
      await open.stepEnd();
      await afterStep(step);
    }
    step = 4;
  });
  return { snapshots: await store.list(), store, warnings, model };
}

const evaluatorOf = async (options: Partial<BenchmarkEvaluatorOptions> = {}) =>
  new BenchmarkEvaluator({ name: "sums", benchmark: await benchmarkFolder({ tasks }), ...options });

describe.each([0, 3])("callback conformance, runEvery %d", (runEvery) => {
  for (const check of callbackConformance(() => evaluatorOf({ runEvery }))) it(check.name, check.run);
});

describe("in the loop", () => {
  it("measures the val split every `runEvery` steps, at the start and at the end, and compares with the baseline", async () => {
    const { snapshots } = await trained(await evaluatorOf({ runEvery: 3 }));
    expect(snapshots.map(({ id, step, status, crossed }) => [id, step, status, crossed])).toEqual([
      ["sums", 0, "complete", ["start"]],
      ["sums", 3, "complete", ["every 3 steps: 3"]],
      ["sums", 4, "complete", ["end"]],
    ]);
    // Correct answers to 1 + 1, 2 + 2 and 3 + 3: none, three and three.
    expect(snapshots.map(({ metrics }) => metrics["pass_rate"]!.value)).toEqual([0, 1, 1]);
    expect(snapshots.map((snapshot) => snapshot["split"])).toEqual(["val", "val", "val"]);
    expect(snapshots[1]!.paired.baseline!["pass_rate"]).toMatchObject({
      n_pairs: 3,
      delta: 1,
      test: "mcnemar_exact",
    });
  });

  it("neither measures nor reads the folder if `runEvery` is 0", async () => {
    const { snapshots, warnings } = await trained(
      new BenchmarkEvaluator({ name: "sums", benchmark: "nowhere" }),
    );
    expect([snapshots, warnings]).toEqual([[], []]);
  });

  it("reports an invalid folder before step 1", async () => {
    const benchmark = await benchmarkFolder({ tasks: [{ ...tasks[0], answer: "two" }] });
    const evaluator = new BenchmarkEvaluator({ name: "sums", benchmark, runEvery: 2 });
    await expect(trained(evaluator)).rejects.toThrow(/tasks\.jsonl:1 answer: got "two"/);
  });

  it("calls the `check` of a module's grader before step 1", async () => {
    const source = `export const judge = {
      name: "judge", fingerprint: "1",
      check: async () => { throw new Error("the judge is not at home"); },
      grade: async (requests) => requests.map(() => ({ status: "graded", scores: { reward: 1 }, raw: null })),
    };`;
    const verifier = { module: "own.mjs", export: "judge" };
    const own = tasks.map((task) => ({ ...task, verifier }));
    const benchmark = await benchmarkFolder({ tasks: own, files: { "own.mjs": source } });
    const evaluator = new BenchmarkEvaluator({ name: "sums", benchmark, runEvery: 2 });
    await expect(trained(evaluator)).rejects.toThrow("the judge is not at home");
  });

  it("marks a measurement failed when a verifier throws, keeps its rows, and continues training", async () => {
    const files = { "own.mjs": 'export const check = () => { throw new Error("no parser"); };' };
    const verifier = { module: "own.mjs", export: "check" };
    const benchmark = await benchmarkFolder({ tasks: tasks.map((task) => ({ ...task, verifier })), files });
    const evaluator = new BenchmarkEvaluator({ name: "sums", benchmark, runEvery: 4 });
    const { snapshots, store } = await trained(evaluator);
    expect(snapshots.map(({ step, status }) => [step, status])).toEqual([
      [0, "failed"],
      [4, "failed"],
    ]);
    expect(snapshots[1]!.reason).toContain("got no grade for 3 of 3 completions (one of them: no parser)");
    expect(await store.rows(snapshots[1]!)).toMatchObject(
      Array.from({ length: 3 }, () => ({
        rewards: [null],
        verdicts: [{ status: "error", raw: "no parser" }],
      })),
    );
  });
});

describe("evaluate", () => {
  it("returns the numbers by the names of their metrics", async () => {
    const metadata = { topic: "sums" };
    const benchmark = await benchmarkFolder({ tasks: tasks.map((task) => ({ ...task, metadata })) });
    const evaluator = new BenchmarkEvaluator({ name: "sums", benchmark, breakdownKeys: ["topic"] });
    // 8 is right for 4 + 4, and wrong for the three tasks of val.
    const model = fakeModel({ reply: () => "8" });
    const numbers = { mean_reward: 1, "mean_reward/topic/sums": 1, pass_rate: 1, "pass_rate/topic/sums": 1 };
    expect(await evaluator.evaluate(model)).toEqual(numbers);
    const { pass_rate } = await evaluator.evaluate(model, { split: "val" });
    expect(pass_rate).toBe(0);
  });
});

describe("metrics", () => {
  it.each([[[]], [null]])("are the default ones for %j", async (metrics) => {
    const evaluator = await evaluatorOf({ metrics });
    expect(Object.keys(await evaluator.evaluate(fakeModel()))).toEqual(["mean_reward", "pass_rate"]);
  });

  it("raise numSamples to their largest k, and sample at temperature 1", async () => {
    const evaluator = await evaluatorOf({ metrics: ["pass@1", "pass@4", "pass^2"] });
    const { snapshot, rows } = await evaluator.measure(fakeModel());
    expect(snapshot["num_samples"]).toBe(4);
    expect(snapshot.provenance.evaluation).toMatchObject({ sampling: { temperature: 1 }, num_samples: 4 });
    expect(rows[0]!.completions).toHaveLength(4);
    const more = await evaluatorOf({ metrics: ["pass@4"], numSamples: 6, temperature: 0.5 });
    expect((await more.measure(fakeModel())).snapshot["num_samples"]).toBe(6);
    await expect(evaluatorOf({ metrics: ["mean_reward", "pass@4"], temperature: 0 })).rejects.toMatchObject({
      path: ["metrics", 1],
      got: '"pass@4" at temperature 0',
    });
  });
});

describe("measure", () => {
  it("measures the test split of any model with the options of the training loop", async () => {
    const chatTemplate = { systemPrompt: "Add." };
    const evaluator = await evaluatorOf({ runEvery: 4, chatTemplate, maxTokens: 9 });
    const { snapshots, model } = await trained(evaluator);
    const { snapshot, rows } = await evaluator.measure(model);
    expect(snapshot).toMatchObject({ id: "sums", phase: "test", step: 0, split: "test", status: "complete" });
    expect(rows).toMatchObject([{ id: "sum-4", rewards: [1], completions: [{ text: "8" }] }]);
    const facts = (one: Snapshot) => one.provenance.evaluation as Record<string, unknown>;
    for (const key of ["chat_template", "sampling", "benchmark"])
      expect(facts(snapshot)[key]).toEqual(facts(snapshots[0]!)[key]);
    expect(facts(snapshot)["chat_template"]).toEqual(chatTemplate);
  });

  it("returns the same numbers as the training loop for the same measurement", async () => {
    const evaluator = await evaluatorOf({ runEvery: 4, numSamples: 3, temperature: 1, metrics: ["pass@2"] });
    const model = fakeModel();
    const { snapshots, store } = await trained(evaluator, { model });
    const { snapshot, rows } = await evaluator.measure(model, { split: "val", as: snapshots[1]! });
    expect(snapshot.metrics).toEqual(snapshots[1]!.metrics);
    expect(rows).toEqual(await store.rows(snapshots[1]!));
    expect(snapshot.provenance.hash).toBe(snapshots[1]!.provenance.hash);
  });

  it("overrides the limit of the training loop with another number, or with null for all tasks", async () => {
    const evaluator = await evaluatorOf({ limit: 1 });
    const count = async (options: Parameters<typeof evaluator.evaluate>[1]) =>
      (await evaluator.measure(fakeModel(), { split: "val", ...options })).rows.length;
    expect([await count({}), await count({ limit: 2 }), await count({ limit: null })]).toEqual([1, 2, 3]);
    await expect(count({ split: "train" as "val" })).rejects.toThrow(
      'BenchmarkEvaluator options.split: got "train"',
    );
  });
});

describe("stores", () => {
  it("receive the rollouts and then the settled snapshot of each measurement, also of `evaluate`", async () => {
    const { store, kept } = keeping();
    const evaluator = await evaluatorOf({
      runEvery: 4,
      store,
      runId: "run-1",
      benchmarkId: "arithmetic",
      modelName: "tiny",
    });
    const { snapshots, model } = await trained(evaluator, { phase: "sft" });
    expect(kept).toEqual([
      ["arithmetic/run-1/sft/sums_step_0.rollouts.json", expect.any(Array)],
      ["arithmetic/run-1/sft/sums_step_0.json", snapshots[0]],
      ["arithmetic/run-1/sft/sums_step_4.rollouts.json", expect.any(Array)],
      ["arithmetic/run-1/sft/sums_step_4.json", snapshots[1]],
    ]);
    expect(kept[1]![1]).toMatchObject({ run_id: "run-1", benchmark_id: "arithmetic", model_name: "tiny" });
    const { snapshot, rows } = await evaluator.measure(model);
    expect(kept.slice(4)).toEqual([
      [
        "arithmetic/run-1/test/sums_step_0.rollouts.json",
        [
          {
            benchmark_id: "arithmetic",
            run_id: "run-1",
            model_name: "tiny",
            phase: "test",
            step: 0,
            split: "test",
            task_id: "sum-4",
            sample_index: 0,
            prompt: [{ role: "user", content: "4 + 4 =" }],
            completion: "8",
            // The fake model returns no ids of scripted replies, so they are not known.
            completion_token_ids: null,
            prompt_tokens: rows[0]!.completions[0]!.inputTokens,
            completion_tokens: null,
            finish: "stop",
            expected: 8,
            reward: 1,
            passed: true,
            status: "graded",
            reason: null,
            metadata: {},
          },
        ],
      ],
      ["arithmetic/run-1/test/sums_step_0.json", snapshot],
    ]);
  });

  it("include `workspaceDir`, in addition to `store`", async () => {
    const { store, kept } = keeping();
    const workspaceDir = join(await benchmarkFolder({}), "results");
    await trained(await evaluatorOf({ runEvery: 4, store, workspaceDir }));
    const text = await readFile(join(workspaceDir, "sums/train/sums_step_4.json"), "utf8");
    expect(kept.map(([name]) => name).at(-1)).toBe("sums/train/sums_step_4.json");
    expect(JSON.parse(text)).toEqual(kept.at(-1)![1]);
    const rollouts = await readFile(join(workspaceDir, "sums/train/sums_step_4.rollouts.json"), "utf8");
    expect(JSON.parse(rollouts)).toEqual(kept.at(-2)![1]);
  });

  it("do not stop training when one fails: it warns and adds to `storeFailures`", async () => {
    const store: BenchmarkStore = {
      name: "broken",
      put: async () => Promise.reject(new Error("disk on fire", { cause: new Error("really") })),
    };
    const { store: other, kept } = keeping();
    const evaluator = await evaluatorOf({ runEvery: 4, store });
    const { snapshots, warnings } = await trained(evaluator, {
      callbacks: [evaluator, await evaluatorOf({ name: "more", runEvery: 4, store: other })],
    });
    expect(snapshots.filter(({ status }) => status === "complete")).toHaveLength(4);
    expect(kept).toHaveLength(4);
    const reason = "disk on fire (really)";
    const names = [0, 4].flatMap((step) => [
      `sums/train/sums_step_${step}.rollouts.json`,
      `sums/train/sums_step_${step}.json`,
    ]);
    expect(evaluator.storeFailures).toEqual(names.map((name) => ({ store: "broken", name, reason })));
    expect(warnings).toEqual(
      names.map((name) => `callback "sums": the store "broken" failed to take ${name}: ${reason}`),
    );
    const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
    const { rows } = await evaluator.measure(fakeModel());
    expect(rows).toHaveLength(1);
    expect(warned.mock.calls.map(([text]) => String(text))).toEqual([
      expect.stringContaining(
        `benchmark "sums": the store "broken" failed to take sums/test/sums_step_0.rollouts.json`,
      ),
      expect.stringContaining("sums_step_0.json"),
    ]);
    warned.mockRestore();
  });

  it("do not delay a step when one hangs, and delay the end by half a minute at most", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const store: BenchmarkStore = { name: "slow", put: () => new Promise(() => {}) };
      const evaluator = await evaluatorOf({ store });
      const warned: string[] = [];
      const context = { rows: async () => [], warn: (message: string) => void warned.push(message) };
      evaluator.onSnapshot(context as never, exampleSnapshot({ id: "sums" }));
      const closed = evaluator.close();
      await vi.advanceTimersByTimeAsync(29_999);
      expect(warned).toEqual([]);
      await vi.advanceTimersByTimeAsync(1);
      await closed;
      expect(warned).toEqual([expect.stringContaining("sums_step_0.json: timed out after 30 s")]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("receive the rollouts of an evaluation that fails because of its verifiers", async () => {
    const { store, kept } = keeping();
    const files = { "own.mjs": 'export const check = () => { throw new Error("no parser"); };' };
    const verifier = { module: "own.mjs", export: "check" };
    const benchmark = await benchmarkFolder({ tasks: tasks.map((task) => ({ ...task, verifier })), files });
    const evaluator = new BenchmarkEvaluator({ name: "sums", benchmark, store });
    await expect(evaluator.measure(fakeModel())).rejects.toThrow("no grade for 1 of 1");
    expect(kept).toMatchObject([
      ["sums/test/sums_step_0.rollouts.json", [{ task_id: "sum-4", reward: null, reason: "no parser" }]],
    ]);
  });

  it("receive neither other callbacks' snapshots nor unfinished gradings", async () => {
    const { store, kept } = keeping();
    const evaluator = await evaluatorOf({ store });
    evaluator.onSnapshot({} as never, exampleSnapshot({ id: "capability" }));
    evaluator.onSnapshot({} as never, exampleSnapshot({ id: "sums", status: "grading" }));
    await evaluator.close();
    expect(kept).toEqual([]);
  });
});

it("throws for invalid options at construction", () => {
  const made = (options: object) => () =>
    new BenchmarkEvaluator({ name: "sums", benchmark: "sums", ...options });
  expect(made({ runEvry: 5 })).toThrow("BenchmarkEvaluator options.runEvry: got the unknown option");
  expect(made({ runEvry: 5 })).toThrow('Did you mean "runEvery"?');
  expect(made({ runEvery: -1 })).toThrow(
    "BenchmarkEvaluator options.runEvery: got -1, expected a number of steps",
  );
  expect(made({ workspaceDir: "" })).toThrow("BenchmarkEvaluator options.workspaceDir");
  expect(made({ store: "results" })).toThrow(
    'BenchmarkEvaluator options.store: got "results", expected a store',
  );
  expect(made({ numSamples: 2, temperature: 0 })).toThrow(
    "benchmark options.numSamples: got 2 at temperature 0",
  );
});

it("is an evaluation that any callback, and `measure`, can take", async () => {
  const benchmark = await benchmarkFolder({ tasks });
  const { snapshot } = await measure(benchmarkEvaluation({ name: "sums", benchmark }, "test"), fakeModel());
  expect(snapshot).toMatchObject({ evaluation: "sums", split: "test", num_tasks: 1 });
});
