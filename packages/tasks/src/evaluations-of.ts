import { basename, resolve } from "node:path";
import type { EvaluationRegistry } from "@periodic-eval/core";
import {
  camelCaseKeys,
  checkName,
  parseOptions,
  snakeCase,
  filledString,
} from "@periodic-eval/contracts/options";
import * as z from "zod";
import { benchmarkEvaluation } from "./benchmark/benchmark-evaluation.ts";
import {
  benchmarkShape,
  type BenchmarkOptions,
  chatTemplateShape,
  priceShape,
} from "./benchmark/benchmark-options.ts";
import { splits } from "./benchmark/benchmark-task.ts";
import {
  comparisonEntries,
  subsampleFields,
  type ComparisonOptions,
} from "./comparisons/comparison-entries.ts";
import { datasetOf } from "./tasks/datasets.ts";
import { taskNamed, type TaskRegistry } from "./tasks/registry.ts";
import { chatShape, taskShape, type TaskOptions } from "./tasks/task.ts";

type Options = Readonly<Record<string, unknown>>;

// Functions and objects cannot be written in a file. An engine is one of them, but `engine: ""` is the measured model.
const { registry: _registry, ...fileShape } = benchmarkShape;

/** Options inside of an entry. */
const nested = (shape: Readonly<Record<string, z.ZodType>>) =>
  z
    .strictObject(snakeCaseKeys(shape))
    .nullish()
    .transform((values) => (values == null ? undefined : camelCaseKeys(values)));

const { subsample: _subsample, chat: _chat, ...otherTaskFields } = taskShape;
const taskSchema = z.strictObject({
  task: z.string(),
  // The task checks these.
  ...snakeCaseKeys(otherTaskFields),
  data: filledString("a folder, a file, or hf:owner/dataset"),
  ...subsampleFields,
  chat: nested(chatShape),
});

// The benchmark checks the values; this schema checks the keys.
const benchmarkSchema = z.strictObject({
  ...snakeCaseKeys(fileShape),
  benchmark: filledString("the path of a folder"),
  engine: z
    .literal("", '"", which is the measured model')
    .nullish()
    .meta({ fix: "Give another engine to a BenchmarkEvaluator." }),
  split: z.enum(splits).nullish(),
  chat_template: nested(chatTemplateShape),
  price: nested(priceShape),
});

/**
 * Returns the kinds `task`, `benchmark`, `win_rate` and `kl_to_reference` (see `comparisonEntries`) for the entries of
 * `evaluations` in a `periodic_eval` block: `buildPeriodicEval(config, { evaluations: evaluationsOf(tasks) })`. Options are those of
 * tasks and of `benchmarkEvaluation`, in snake case:
 *
 *     - { task: gsm8k, data: data/gsm8k, shots: 8, limit: 50, chat: { system: Be brief. } }
 *     - { task: mmlu, data: data/mmlu, subsample_n: 200, subsample_seed: 42 }
 *     - { benchmark: benchmarks/arithmetic, max_tokens: 64 } # its split val, without `split: test`
 *
 * A benchmark's name defaults to the name of its folder. The data of a task of this package defaults to its dataset on the hub.
 *
 * @param comparisons How reference models and judges are opened.
 */
export function evaluationsOf(tasks: TaskRegistry, comparisons: ComparisonOptions = {}): EvaluationRegistry {
  const single = taskEntries(tasks);
  return { ...single, ...comparisonEntries(single, comparisons) };
}

const taskEntries = (tasks: TaskRegistry): EvaluationRegistry => ({
  task(options, where) {
    const task = taskNamed(tasks, options["task"], where, ["task"]);
    const dataset = datasetOf(task.name);
    return task.open(taskOptions(dataset === null ? options : { data: dataset.source, ...options }, where));
  },
  benchmark(options, where) {
    const { split, ...rest } = parseOptions(where, benchmarkSchema, options);
    const name = options["name"] ?? basename(resolve(rest.benchmark));
    checkName(where, name, ["name"]);
    return benchmarkEvaluation({ ...camelCaseKeys(rest), name } as BenchmarkOptions, split ?? "val");
  },
});

function taskOptions(options: Options, where: string): TaskOptions {
  const { task: _, subsample_n: n, subsample_seed: seed, ...rest } = parseOptions(where, taskSchema, options);
  return { ...camelCaseKeys(rest), ...(n !== null && { subsample: { n, seed } }) } as unknown as TaskOptions;
}

/** `maxTokens` → `max_tokens`, with any value. */
function snakeCaseKeys(shape: Readonly<Record<string, z.ZodType>>): Record<string, z.ZodType> {
  return Object.fromEntries(Object.keys(shape).map((name) => [snakeCase(name), z.unknown().optional()]));
}
