import { measure } from "@periodic-eval/core";
import { evaluationConformance, fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { benchmarkFolder, metadata, type FolderFiles } from "./benchmark-folder.test-data.ts";
import { benchmarkEvaluation } from "./benchmark-evaluation.ts";
import type { BenchmarkOptions } from "./benchmark-options.ts";
import { measured, reply, tasks } from "./sums.test-data.ts";
import type { BenchmarkRow } from "./benchmark-task.ts";

describe.each([
  ["greedily", {}],
  [
    "sampled",
    { numSamples: 3, temperature: 1, maxTokens: 8, nConcurrent: 2, metrics: ["pass@2", "mean_reward"] },
  ],
])("conformance, %s", (_, options) => {
  const make = async () => {
    const files = {
      "own.mjs": "export const short = (text) => ({ reward: 1 / (1 + text.length), raw: text });",
    };
    const own = { id: "own", prompt: "?", split: "val", verifier: { module: "./own.mjs", export: "short" } };
    const benchmark = await benchmarkFolder({ tasks: [...tasks, own], files });
    const breakdownKeys = ["topic"];
    return {
      evaluation: benchmarkEvaluation({ name: "sums", benchmark, breakdownKeys, ...options }),
      model: fakeModel({ contextLength: 200 }),
    };
  };
  for (const check of evaluationConformance(make)) it(check.name, check.run);
});

describe("a custom benchmark", () => {
  it("generates for each task, grades each completion with the task's verifier, and breaks metrics down by metadata", async () => {
    const { snapshot, rows } = await measured({ breakdownKeys: ["topic"] });
    expect(snapshot.status).toBe("complete");
    const metrics = Object.entries(snapshot.metrics).map(([name, { value, n }]) => [name, value, n]);
    // The answers 2, 4, 6 and yes are correct; 4 + 4 is not 6, and "Yes!" is not "no".
    expect(metrics).toEqual([
      ["mean_reward", 4 / 6, 6],
      ["mean_reward/topic/words", 1 / 2, 2],
      ["mean_reward/topic/sums", 3 / 4, 4],
      ["pass_rate", 4 / 6, 6],
      ["pass_rate/topic/words", 1 / 2, 2],
      ["pass_rate/topic/sums", 3 / 4, 4],
    ]);
    expect(snapshot.primary_metric).toBe("mean_reward");
    expect(snapshot).toMatchObject({
      benchmark: "sums",
      benchmark_version: "2",
      benchmark_id: "sums",
      run_id: null,
      model_name: null,
      split: "val",
      num_tasks: 6,
      num_samples: 1,
      ungraded: 0,
      truncated: 0,
    });
    expect(rows.find(({ id }) => id === "sum-4")).toEqual({
      id: "sum-4",
      prompt: [{ role: "user", content: "4 + 4 =" }],
      answer: 8,
      verifier: { name: "numeric", args: {} },
      metadata: { topic: "sums", level: 0 },
      // `<|user|>4 + 4 =<|end|><|assistant|>`: 7 letters and 3 marks; the fake counts no tokens of a scripted reply.
      completions: [
        { text: "6", answer: "6", ids: null, finish: "stop", inputTokens: 10, outputTokens: null },
      ],
      rewards: [0],
      passed: [false],
      verdicts: [{ status: "graded", raw: "6 is not 8 (rel_tol 1e-9, abs_tol 0)" }],
    });
  });

  it("measures the first `limit` tasks of a split, in a seeded order", async () => {
    const all = tasks.map((task, at) => ({ ...task, split: at % 2 === 0 ? "val" : "test" }));
    const { rows, snapshot } = await measured({ limit: 2 }, undefined, { tasks: all });
    expect(rows.map(({ id }) => id).sort()).toEqual(["sum-1", "sum-3"]);
    expect(snapshot.provenance.evaluation).toMatchObject({ split: "val", subsample: { limit: 2, seed: 42 } });
  });

  it("records a throwing verifier as a failed grade with its reason, and continues", async () => {
    const files = { "own.mjs": 'export const check = () => { throw new Error("no parser"); };' };
    const own = { id: "own", prompt: "?", split: "val", verifier: { module: "own.mjs", export: "check" } };
    const all = { tasks: [...tasks, own], files };
    const { snapshot, rows } = await measured({ maxErrorShare: 0.2 }, undefined, all);
    expect(rows.find(({ id }) => id === "own")).toMatchObject({
      rewards: [null],
      passed: [null],
      verdicts: [{ status: "error", raw: "no parser" }],
    });
    expect(snapshot).toMatchObject({
      ungraded: 1,
      num_tasks: 7,
      metrics: { pass_rate: { value: 4 / 6, n: 6 } },
    });
    // A share of 1 in 7 exceeds the default of 10 %.
    await expect(measured({}, undefined, all)).rejects.toThrow(
      "verifiers: got no grade for 1 of 7 completions (one of them: no parser), expected at most 10 %",
    );
  });

  it.each([
    ["null", "null"],
    ["a verdict without scores", '{ status: "graded", raw: null }'],
  ])(
    "records a custom grader that returns %s as a failed grade, and grades the other tasks",
    async (_, verdict) => {
      const files = {
        "own.mjs": `export const own = { name: "own", fingerprint: "1", grade: async () => [${verdict}] };`,
      };
      const own = { id: "own", prompt: "?", split: "val", verifier: { module: "own.mjs", export: "own" } };
      const { snapshot, rows } = await measured({ maxErrorShare: 0.2 }, undefined, {
        tasks: [...tasks, own],
        files,
      });
      expect(rows.find(({ id }) => id === "own")).toMatchObject({
        rewards: [null],
        verdicts: [{ status: "error", raw: expect.stringContaining("which is not a verdict") }],
      });
      expect(snapshot).toMatchObject({ ungraded: 1, metrics: { pass_rate: { value: 4 / 6, n: 6 } } });
    },
  );

  it("fails unfinished thinking, and checks the text after finished thinking", async () => {
    const said: Record<string, string> = { a: "<think>2, or 3", b: "<think>3?</think>2", c: "2" };
    const thinking = fakeModel({ reply: (prompt) => said[/>(\w)</.exec(prompt)![1]!]! });
    const all = Object.keys(said).map((id) => ({
      id,
      prompt: id,
      answer: "2",
      split: "val",
      verifier: "exact_match",
    }));
    const { rows } = await measured({}, thinking, { tasks: all });
    const of = (id: string) => rows.find((row) => row.id === id)!;
    expect(of("a")).toMatchObject({
      completions: [{ text: "<think>2, or 3", answer: null }],
      rewards: [0],
      passed: [false],
      verdicts: [{ status: "unfinished", raw: "the thinking did not end" }],
    });
    expect([of("b").rewards, of("c").rewards]).toEqual([[1], [1]]);
  });
});

describe("mistakes reported before step 1", () => {
  it("reports a split without tasks, and a breakdown key that no task has", async () => {
    const test = tasks.map((task) => ({ ...task, split: "test" }));
    await expect(measured({}, undefined, { tasks: test })).rejects.toThrow("got no tasks of the split val");
    await expect(measured({ breakdownKeys: ["topics"] })).rejects.toThrow(
      'benchmark options.breakdownKeys[0]: got "topics", which no task of the split val has in its metadata, expected some of topic, level. Did you mean "topic"?',
    );
  });

  it("reports the line of a task that exceeds the context length, and never truncates a prompt for maxTokens", async () => {
    const long = { id: "long", prompt: "x".repeat(50), answer: "x", split: "val", verifier: "exact_match" };
    const model = fakeModel({ contextLength: 40, reply });
    await expect(measured({}, model, { tasks: [...tasks, long] })).rejects.toThrow(
      /tasks\.jsonl:7: got a prompt of 53 tokens, expected at most 40/,
    );
    // The prompts have 10 or 11 of 40 tokens: none has room for 256 new tokens, each has room for 29.
    const roomOf = async (maxTokens: number) =>
      (await measured({ maxTokens }, model)).snapshot.provenance.evaluation;
    expect(await roomOf(256)).toMatchObject({ short_of_room: 6 });
    expect(await roomOf(29)).toMatchObject({ short_of_room: 0 });
  });

  it("reports the line of a task on which the template fails", async () => {
    const tokenizer = fakeTokenizer({
      failsOn: (messages) => messages.some(({ content }) => content === "3 + 3 ="),
    });
    await expect(measured({}, fakeModel({ tokenizer }))).rejects.toThrow(
      /tasks\.jsonl:3: got a chat template that fails \(the template raised an exception\)/,
    );
  });

  it("rejects invalid options", () => {
    const made = (options: object) => () =>
      benchmarkEvaluation({ name: "sums", benchmark: "sums", ...options });
    expect(made({ maxToken: 1 })).toThrow('benchmark options.maxToken: got the unknown option "maxToken"');
    expect(made({ name: "a/b" })).toThrow('benchmark options.name: got "a/b"');
    expect(made({ benchmark: "" })).toThrow(
      'benchmark options.benchmark: got "", expected the path of a folder',
    );
    expect(made({ maxTokens: 0 })).toThrow("benchmark options.maxTokens: got 0, expected a positive integer");
    expect(made({ temperature: Number.NaN })).toThrow("benchmark options.temperature: got NaN");
    expect(made({ limit: 0 })).toThrow(
      "benchmark options.limit: got 0, expected a positive integer, or null for all",
    );
    expect(made({ numSamples: 4, temperature: 0 })).toThrow(
      "benchmark options.numSamples: got 4 at temperature 0, expected one completion per task, or a temperature above 0",
    );
    expect(made({ metrics: "pass_rate" })).toThrow(
      'benchmark options.metrics: got "pass_rate", expected an array of names of metrics',
    );
    expect(made({ nConcurrent: 0 })).toThrow("benchmark options.nConcurrent: got 0");
    expect(made({ maxErrorShare: 2 })).toThrow(
      "benchmark options.maxErrorShare: got 2, expected a share from 0 to 1",
    );
    expect(made({ price: { inputPerMillion: 1 } })).toThrow("benchmark options.price");
    expect(made({ runId: "../x" })).toThrow('benchmark options.runId: got "../x"');
    expect(made({ chatTemplate: { userTemplate: "prompt" } })).toThrow(
      'benchmark options.chatTemplate.userTemplate: got "prompt", expected a string that contains {prompt}',
    );
    expect(made({ chatTemplate: { enableThinking: "no" } })).toThrow(
      "benchmark options.chatTemplate.enableThinking",
    );
    expect(made({ chatTemplate: { system: "x" } })).toThrow('Did you mean "systemPrompt"?');
    expect(() => benchmarkEvaluation({ name: "a", benchmark: "b" }, "train" as "val")).toThrow(
      'benchmark split: got "train"',
    );
  });
});

it("is not comparable after the tasks, a verifier's code or the chat template change", async () => {
  const source = (text: string) => ({ "own.mjs": `export const check = () => ${text};` });
  const own = { id: "own", prompt: "?", split: "val", verifier: { module: "own.mjs", export: "check" } };
  const hashOf = async (options: Partial<BenchmarkOptions>, files: FolderFiles) =>
    (await measured(options, undefined, files)).snapshot.provenance.hash;
  const plain = { tasks: [own], files: source("true") };
  const hashes = [
    await hashOf({}, plain),
    await hashOf({}, { ...plain, files: source("false") }),
    await hashOf({}, { ...plain, metadata: `${metadata}description: x\n` }),
    await hashOf({}, { ...plain, tasks: [{ ...own, prompt: "!" }] }),
    await hashOf({ chatTemplate: { systemPrompt: "" } }, plain),
    await hashOf({ maxTokens: 5 }, plain),
  ];
  expect(new Set(hashes).size).toBe(hashes.length);
  expect(
    await hashOf(
      { nConcurrent: 2, modelName: "mine", price: { inputPerMillion: 1, outputPerMillion: 1 } },
      plain,
    ),
  ).toBe(hashes[0]);
});

it("grades rows against the tasks they were generated for, after the folder has changed", async () => {
  const benchmark = await benchmarkFolder({ tasks });
  const evaluation = benchmarkEvaluation({ name: "sums", benchmark });
  const { rows } = await measure(evaluation, fakeModel({ reply }));
  await writeFile(join(benchmark, "tasks.jsonl"), JSON.stringify({ ...tasks[0], answer: 7 }));
  await evaluation.items(fakeModel());
  const graded = rows as readonly BenchmarkRow[];
  expect(await evaluation.grade!(graded, { signal: new AbortController().signal })).toEqual(rows);
});
