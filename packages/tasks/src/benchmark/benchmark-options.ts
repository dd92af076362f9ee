import { PeriodicEvalError } from "@periodic-eval/core";
import type { JudgePrice } from "@periodic-eval/core/grading";
import { checkKeys, checkName, isCount, quoteValue } from "@periodic-eval/core/internal";
import { checkChatTemplate, type BenchmarkChatTemplate } from "./chat-template.ts";
import { benchmarkMetrics, metricsOf, type MetricRegistry, type NamedMetric } from "./benchmark-metrics.ts";

/** What is asked, and what is made of it. */
export interface BenchmarkOptions {
  /** Names the snapshots. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly name: string;
  /** The folder with `tasks.jsonl` and `metadata.yaml`. */
  readonly benchmark: string;
  /** Most tokens of a completion; default 256. */
  readonly maxTokens?: number;
  /** Default 0: greedy. */
  readonly temperature?: number;
  /** The first so many tasks of a split, in the file's order; null (default) for all. */
  readonly limit?: number | null;
  /** Completions of each task; default 1. More than one want a temperature. */
  readonly numSamples?: number;
  /**
   * Requests that are given to the engine at once; default 8. A served model sends them at the same time, up to its own
   * `concurrency`; a model in memory reads them as one batch. The next are given when all of these are answered. As many
   * tasks are checked at once.
   */
  readonly nConcurrent?: number;
  /** Keys of the tasks' metadata: every metric is told for each of their values too. Default none. */
  readonly breakdownKeys?: readonly string[];
  /** Names of metrics, the first of which carries the verdict; none: `mean_reward` and `pass_rate`. */
  readonly metrics?: readonly string[];
  /** Where the names are looked up; default `benchmarkMetrics`. */
  readonly registry?: MetricRegistry;
  readonly chatTemplate?: BenchmarkChatTemplate;
  /** Of completions, how many a verifier may fail to grade before the look is `failed`; default 0.1. */
  readonly maxErrorShare?: number;
  /** What tokens cost; left out: the cost is not told. */
  readonly price?: JudgePrice;
  /** The model's name in snapshots; default its own. */
  readonly modelName?: string;
  /** Names the run, and the folder of what the store is given. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly runId?: string;
  /** What a store calls the benchmark, `name` by default. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly benchmarkId?: string;
}

const known = {
  name: true,
  benchmark: true,
  maxTokens: true,
  temperature: true,
  limit: true,
  numSamples: true,
  nConcurrent: true,
  breakdownKeys: true,
  metrics: true,
  registry: true,
  chatTemplate: true,
  maxErrorShare: true,
  price: true,
  modelName: true,
  runId: true,
  benchmarkId: true,
} as const satisfies Record<keyof BenchmarkOptions, true>;

export const benchmarkOptionNames = Object.keys(known);

type Optional = "modelName" | "runId" | "benchmarkId";
/** Options with their defaults, checked. */
export type CompleteOptions = Required<
  Omit<BenchmarkOptions, Optional | "metrics" | "registry" | "price">
> & {
  readonly [Key in Optional]: string | null;
} & { readonly metrics: readonly NamedMetric[]; readonly price: JudgePrice | null };

/** @throws PeriodicEvalError `config` for a wrong option. */
export function completeOptions(where: string, options: BenchmarkOptions): CompleteOptions {
  checkKeys(where, options, benchmarkOptionNames);
  const {
    name,
    benchmark,
    maxTokens = 256,
    temperature = 0,
    limit = null,
    numSamples = 1,
    nConcurrent = 8,
    breakdownKeys = [],
    metrics = [],
    registry = benchmarkMetrics,
    chatTemplate = {},
    maxErrorShare = 0.1,
    price = null,
    modelName = null,
    runId = null,
    benchmarkId = null,
  } = options;
  const count = "a whole number of 1 or more";
  const checks: readonly (readonly [keyof BenchmarkOptions, boolean, unknown, string])[] = [
    ["benchmark", isFilled(benchmark), benchmark, "the path of a folder"],
    ["maxTokens", isCount(maxTokens, 1), maxTokens, count],
    ["temperature", isAmount(temperature), temperature, "0 (greedy) or more"],
    ["limit", limit === null || isCount(limit, 1), limit, `${count}, or null for all`],
    ["numSamples", isCount(numSamples, 1), numSamples, count],
    ["nConcurrent", isCount(nConcurrent, 1), nConcurrent, count],
    ["breakdownKeys", isTexts(breakdownKeys), breakdownKeys, "a list of keys of the tasks' metadata"],
    ["metrics", isTexts(metrics), metrics, "a list of metrics' names"],
    ["maxErrorShare", isAmount(maxErrorShare) && maxErrorShare <= 1, maxErrorShare, "a share from 0 to 1"],
    ["price", isPrice(price), price, "{ inputPerMillion, outputPerMillion }, each 0 or more"],
    ["modelName", modelName === null || isFilled(modelName), modelName, "a text that is not empty"],
  ];
  for (const [option, isRight, got, expected] of checks)
    if (!isRight) throw wrong(`${where}.${option}`, got, expected, "Correct the option.");
  checkName(`${where}.name`, name);
  if (runId !== null) checkName(`${where}.runId`, runId);
  if (benchmarkId !== null) checkName(`${where}.benchmarkId`, benchmarkId);
  checkChatTemplate(`${where}.chatTemplate`, chatTemplate);
  if (numSamples > 1 && temperature === 0)
    throw wrong(
      `${where}.numSamples`,
      `${numSamples} at temperature 0`,
      "1, or a temperature over 0",
      "Raise the temperature: greedy completions of a task are all the same.",
    );
  const named = metricsOf(`${where}.metrics`, metrics, { registry, numSamples });
  const sampling = { maxTokens, temperature, limit, numSamples, nConcurrent };
  const told = { breakdownKeys, metrics: named, maxErrorShare, price };
  return { name, benchmark, ...sampling, ...told, chatTemplate, modelName, runId, benchmarkId };
}

const isFilled = (value: unknown): boolean => typeof value === "string" && value !== "";
const isAmount = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0;
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isFilled);
const isPrice = (price: JudgePrice | null): boolean =>
  price === null ||
  (typeof price === "object" && isAmount(price.inputPerMillion) && isAmount(price.outputPerMillion));

function wrong(where: string, got: unknown, expected: string, fix: string): PeriodicEvalError {
  const text = typeof got === "string" && where.endsWith("numSamples") ? got : quoteValue(got);
  return new PeriodicEvalError({ code: "config", where, got: text, expected, fix });
}
