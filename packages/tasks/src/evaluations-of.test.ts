import { buildPeriodicEval, measure } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { benchmarkFolder } from "./benchmark/benchmark-folder.test-data.ts";
import { evaluationsOf } from "./evaluations-of.ts";
import { choiceTask } from "./suite/fake-tasks.test-data.ts";
import type { TaskOptions } from "./tasks/task.ts";

let opened: TaskOptions | null = null;
const choices = choiceTask();
const tasks = {
  choices: { ...choices, open: (options: TaskOptions) => choices.open((opened = options)) },
  mmlu: choiceTask({ name: "mmlu" }),
  mmlu_anatomy: choiceTask({ name: "mmlu_anatomy" }),
};
const build = (...evaluations: readonly object[]) =>
  buildPeriodicEval({ capability: false, evaluations }, { phase: "em", evaluations: evaluationsOf(tasks) });

it("opens tasks with the options of the file", async () => {
  const all = {
    task: "choices",
    data: "d",
    shots: 2,
    fewshot_pool: "p",
    fewshot_seed: 7,
    limit: 50,
    subsample_n: 10,
    subsample_seed: 3,
    chat: { system: "Be brief.", fewshot_as_multiturn: false },
  };
  const { callbacks } = await build(all);
  expect(callbacks.map(({ id }) => id)).toEqual(["choices"]);
  expect(opened).toEqual({
    data: "d",
    shots: 2,
    fewshotPool: "p",
    fewshotSeed: 7,
    limit: 50,
    subsample: { n: 10, seed: 3 },
    chat: { system: "Be brief.", fewshotAsMultiturn: false },
  });
  await build({ task: "choices", data: "d", chat: null });
  expect(opened).toEqual({ data: "d" });
  await build({ task: "choices", data: "d", chat: { system: "Be brief." } });
  expect(opened).toEqual({ data: "d", chat: { system: "Be brief." } });
});

it("reads a built-in task without data from its dataset on the hub", async () => {
  let data: string | undefined;
  const mmlu = {
    ...choices,
    name: "mmlu_anatomy",
    open: (of: TaskOptions) => choices.open(((data = of.data), of)),
  };
  const registry = evaluationsOf({ mmlu_anatomy: mmlu });
  await registry["task"]!({ task: "mmlu_anatomy", limit: 5 }, "periodic_eval.evaluations[0]");
  expect(data).toBe("hf:cais/mmlu");
  await registry["task"]!({ task: "mmlu_anatomy", data: "d" }, "periodic_eval.evaluations[0]");
  expect(data).toBe("d");
});

it("measures the val split of a benchmark, named by its folder or by `name`", async () => {
  const benchmark = await benchmarkFolder({
    tasks: [
      { id: "a", prompt: "1 + 1 =", answer: "2", verifier: "exact_match", split: "val" },
      { id: "b", prompt: "1 + 2 =", answer: "3", verifier: "exact_match", split: "test" },
    ],
  });
  const chat = { system_prompt: "Be brief.", user_template: "Sum: {prompt}" };
  const { callbacks } = await build(
    { benchmark, max_tokens: 8 },
    { benchmark, name: "sums", chat_template: chat, price: { input_per_million: 1, output_per_million: 2 } },
  );
  expect(callbacks.map(({ id }) => id)).toEqual([benchmark.split("/").at(-1), "sums"]);
  const { rows, snapshot } = await measure(callbacks[1]!.asks![0]!, fakeModel());
  expect(rows).toMatchObject([{ id: "a", prompt: [{ role: "user", content: "Sum: 1 + 1 =" }] }]);
  expect(snapshot.provenance.evaluation).toMatchObject({ chat_template: { systemPrompt: "Be brief." } });
});

it('measures the test split of a benchmark by the model itself, with `split: test` and `engine: ""` in YAML', async () => {
  const benchmark = await benchmarkFolder({
    tasks: [
      { id: "a", prompt: "1 + 1 =", answer: "2", verifier: "exact_match", split: "val" },
      { id: "b", prompt: "1 + 2 =", answer: "3", verifier: "exact_match", split: "test" },
    ],
  });
  const block = parse(
    `evaluations: [{ benchmark: "${benchmark}", split: test, engine: "", metrics: [], max_tokens: null, chat_template: null }]`,
  );
  const { callbacks } = await build(...block.evaluations);
  const { rows, snapshot } = await measure(callbacks[0]!.asks![0]!, fakeModel());
  expect(rows).toMatchObject([{ id: "b" }]);
  expect(snapshot).toMatchObject({ split: "test" });
});

it.each([
  [
    { task: "choces", data: "d" },
    '[0].task: got "choces", expected choices, mmlu, or a part of one. Did you mean "choices"?',
  ],
  [{ task: 3, data: "d" }, "[0].task: got 3, expected choices, mmlu, or a part of one."],
  [{ task: "choices" }, "[0].data: got nothing, expected a folder, a file, or hf:owner/dataset"],
  [{ task: "choices", data: "d", subsample_n: 0 }, "[0].subsample_n: got 0"],
  [{ task: "choices", data: "d", subsample_n: 3, subsample_seed: -1 }, "[0].subsample_seed: got -1"],
  [{ task: "choices", data: "d", limits: 3 }, '[0].limits: got the unknown option "limits"'],
  [{ task: "choices", data: "d", chat: { sytem: "x" } }, 'Did you mean "system"?'],
  [{ task: "choices", data: "d", chat: true }, "[0].chat: got true"],
  [{ benchmark: 3 }, "[0].benchmark: got 3, expected the path of a folder"],
  [{ benchmark: "b", split: "train" }, '[0].split: got "train"'],
  [{ benchmark: "b", engine: "http://localhost" }, '[0].engine: got "http://localhost"'],
  [{ benchmark: "b", maxTokens: 3 }, 'Did you mean "max_tokens"?'],
  [{ benchmark: "b", registry: {} }, 'got the unknown option "registry"'],
  [{ benchmark: "b", max_tokens: 0 }, "evaluations[0].max_tokens: got 0"],
  [{ benchmark: "b", chat_template: { systemPrompt: "x" } }, 'Did you mean "system_prompt"?'],
  [{ benchmark: "b", num_samples: 2, temperature: 0 }, "evaluations[0].num_samples: got 2 at temperature 0"],
  [{ benchmark: "b", breakdown_keys: [3] }, "evaluations[0].breakdown_keys[0]: got 3"],
  [{ benchmark: "b", name: "a b" }, "[0].name"],
])("rejects %j: %s", async (entry, message) => {
  await expect(build(entry)).rejects.toThrow(message);
  await expect(build(entry)).rejects.toThrow("periodic_eval.evaluations[0]");
});

it.each([
  [{ price: 3 }, ["price"]],
  [{ price: { output_per_millionn: 2 } }, ["price", "output_per_millionn"]],
  [{ chat_template: 3 }, ["chat_template"]],
  [{ chat_template: { user_templatee: "{prompt}" } }, ["chat_template", "user_templatee"]],
])("rejects a benchmark entry with %j at the path of the wrong key", async (options, path) => {
  await expect(build({ benchmark: "b", ...options })).rejects.toMatchObject({
    code: "config",
    path: ["evaluations", 0, ...path],
  });
});

it.each([
  ["breakdown_keys", { breakdown_keys: ["topik"] }, ["breakdown_keys", 0], "breakdown_keys[0]"],
  ["a folder that does not exist", { benchmark: "none" }, ["benchmark"], "benchmark"],
])(
  "places an error about a benchmark's items at the key of the entry: %s",
  async (_, options, path, where) => {
    const task = { id: "a", prompt: "1 + 1 =", answer: "2", verifier: "exact_match", split: "val" };
    const benchmark = await benchmarkFolder({ tasks: [task] });
    const { callbacks } = await build({ benchmark, ...options });
    await expect(measure(callbacks[0]!.asks![0]!, fakeModel())).rejects.toMatchObject({
      where: `periodic_eval.evaluations[0].${where}`,
      path: ["evaluations", 0, ...path],
    });
  },
);

it("spells all keys in an error as YAML does", async () => {
  await expect(build({ benchmark: "b", price: { input_per_million: "x" } })).rejects.toMatchObject({
    expected: "{ input_per_million, output_per_million }, each 0 or more",
  });
});
