import { basename, resolve } from "node:path";
import { PeriodicEvalError, type EvaluationRegistry } from "@periodic-eval/core";
import { checkKeys, checkName, isCount, quoteValue } from "@periodic-eval/core/internal";
import { benchmarkEvaluation } from "./benchmark/benchmark-evaluation.ts";
import { benchmarkOptionNames, type BenchmarkOptions } from "./benchmark/benchmark-options.ts";
import type { TaskRegistry } from "./suite/open-tasks.ts";
import { taskNamed } from "./tasks/registry.ts";
import type { TaskOptions } from "./tasks/task.ts";

type Options = Readonly<Record<string, unknown>>;

const taskKeys = [
  "task",
  "data",
  "shots",
  "fewshot_pool",
  "fewshot_seed",
  "limit",
  "subsample_n",
  "subsample_seed",
  "chat",
];

/** What is no text, number or list in a file. */
const notInFiles = ["registry"];

/** `maxTokens` → `max_tokens`. */
const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * What makes the entries of `evaluations` in a `periodic_eval` block: `buildPeriodicEval(config, { evaluations:
 * evaluationsOf(tasks) })`. Options are those of tasks and of `BenchmarkEvaluator`, in the case of YAML's keys:
 *
 *     - { task: gsm8k, data: data/gsm8k, shots: 8, limit: 50, chat: { system: Be brief. } }
 *     - { task: mmlu, data: data/mmlu, subsample_n: 200, subsample_seed: 42 }
 *     - { benchmark: benchmarks/arithmetic, max_tokens: 64 } # its split val
 *
 * A benchmark is named after its folder where it has no `name`.
 */
export const evaluationsOf = (tasks: TaskRegistry): EvaluationRegistry => ({
  task(options, where) {
    const task = taskNamed(tasks, options["task"], `${where}.task`);
    checkKeys(where, options, taskKeys);
    return task.open(taskOptions(options, where));
  },
  benchmark(options, where) {
    const { benchmark } = options;
    if (typeof benchmark !== "string" || benchmark === "")
      throw wrong(`${where}.benchmark`, benchmark, "the path of a folder");
    const camel = camelCased(where, options, benchmarkOptionNames.filter(isWritten));
    const { chat_template: chat, price } = options;
    const name = camel["name"] ?? basename(resolve(benchmark));
    checkName(`${where}.name`, name);
    return benchmarkEvaluation({
      ...camel,
      name,
      ...(isMap(chat) && { chatTemplate: camelCased(`${where}.chat_template`, chat, chatKeys) }),
      ...(isMap(price) && { price: camelCased(`${where}.price`, price, priceKeys) }),
    } as unknown as BenchmarkOptions);
  },
});

// What is written is checked by those that take it.
const isWritten = (name: string): boolean => !notInFiles.includes(name);
const chatKeys = ["systemPrompt", "userTemplate", "enableThinking"];
const priceKeys = ["inputPerMillion", "outputPerMillion"];

function taskOptions(options: Options, where: string): TaskOptions {
  const { task: _task, fewshot_pool: pool, fewshot_seed: fewshotSeed, chat, ...rest } = options;
  const { subsample_n: n = null, subsample_seed: seed = 42, ...own } = rest;
  if (typeof own["data"] !== "string" || own["data"] === "")
    throw wrong(`${where}.data`, own["data"], "a folder, a file, or hf:owner/dataset");
  if (n !== null && !isCount(n, 1))
    throw wrong(`${where}.subsample_n`, n, "a whole number of 1 or more, or null for all");
  if (!isCount(seed)) throw wrong(`${where}.subsample_seed`, seed, "a whole number of 0 or more");
  return {
    ...own,
    ...(pool !== undefined && { fewshotPool: pool }),
    ...(fewshotSeed !== undefined && { fewshotSeed }),
    ...(n !== null && { subsample: { n, seed } }),
    ...(chat != null && {
      chat: camelCased(`${where}.chat`, chat as Options, ["system", "fewshotAsMultiturn"]),
    }),
  } as unknown as TaskOptions;
}

/** @throws PeriodicEvalError `config` for a key that is none of these names in the case of YAML's. */
function camelCased(where: string, options: Options, names: readonly string[]): Record<string, unknown> {
  checkKeys(where, options, names.map(snakeCase));
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = options[snakeCase(name)];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

const isMap = (value: unknown): value is Options =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function wrong(where: string, got: unknown, expected: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where,
    got: got === undefined ? "nothing" : quoteValue(got),
    expected,
    fix: "Correct the value.",
  });
}
