import * as z from "zod";
import {
  configError,
  parseOptions,
  positiveInteger,
  numberFromZero,
  filledString,
  nameSchema,
} from "@periodic-eval/contracts/options";
import type { Message, Prompt, TemplateKwargs } from "@periodic-eval/core";
import type { JudgePrice } from "@periodic-eval/core/grading";
import { benchmarkMetrics, findMetrics, type MetricRegistry, type NamedMetric } from "./benchmark-metrics.ts";
import { isEngine, type BenchmarkEngine } from "./engine.ts";

/** How tasks become chats. Both splits, in the loop and in the final test, use the same template. */
export interface BenchmarkChatTemplate {
  /**
   * The system message, `""` for an explicit empty one. Default: no system message is passed. A task whose messages begin with a
   * system message keeps that one.
   */
  readonly systemPrompt?: string;
  /** The user message, with `{prompt}` for a task's prompt or the last of its messages; default `{prompt}`. */
  readonly userTemplate?: string;
  /** Passed to the template as `enable_thinking`. Default: not passed. */
  readonly enableThinking?: boolean;
}

const hole = "{prompt}";

const withHole = `a string that contains ${hole}`;

/** Schemas of the options. */
export const chatTemplateShape = {
  systemPrompt: z.string().meta({ fix: "Leave it out for no system prompt." }).optional(),
  userTemplate: z
    .string(withHole)
    .includes(hole, withHole)
    .meta({ fix: "Mark where the task's prompt goes." })
    .optional(),
  enableThinking: z.boolean("true or false").meta({ fix: "Write it without quotes." }).optional(),
} satisfies Record<keyof BenchmarkChatTemplate, z.ZodType>;

type Chat = Extract<Prompt, { readonly messages: unknown }>;

/** Returns the chat of a task. */
export function chatOf(messages: readonly Message[], template: BenchmarkChatTemplate): Chat {
  const { systemPrompt, userTemplate = hole, enableThinking } = template;
  const applied = messages.map((message, at) =>
    at === messages.length - 1
      ? { ...message, content: userTemplate.split(hole).join(message.content) }
      : message,
  );
  const hasSystem = messages[0]?.role === "system";
  const templateKwargs: TemplateKwargs = { enable_thinking: enableThinking ?? null };
  return {
    messages: applied,
    ...(systemPrompt !== undefined && !hasSystem && { system: { text: systemPrompt } }),
    ...(enableThinking !== undefined && { templateKwargs }),
  };
}

/** Options of a custom benchmark. */
export interface BenchmarkOptions {
  /** The id of the snapshots. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly name: string;
  /** The folder with `tasks.jsonl` and `metadata.yaml`. */
  readonly benchmark: string;
  /**
   * Writes the completions instead of the measured model: a model or another object with `generate`, or a function of prompts
   * and sampling. The provenance names it. A function has the engine `custom`; an object can tell more in its `identity`. `""` or
   * null (default): the measured model.
   */
  readonly engine?: BenchmarkEngine | "" | null;
  /** The most tokens of a completion; default 256. */
  readonly maxTokens?: number;
  /** Default 0 (greedy) for one completion per task, 1 for several. */
  readonly temperature?: number;
  /** Keeps the first `limit` tasks of a split, in the file's order; null (default) for all. */
  readonly limit?: number | null;
  /** Completions per task, at least the k of every `pass@k` in `metrics`; default 1. More than one need a temperature above 0. */
  readonly numSamples?: number;
  /**
   * How many requests the engine gets at once; default 8. A served model sends them in parallel, up to its `concurrency`; a model
   * in memory reads them as one batch. The next requests follow when all of these are answered. As many tasks are checked at
   * once.
   */
  readonly nConcurrent?: number;
  /** Keys of the tasks' metadata: every metric is also computed for each of their values. Default none. */
  readonly breakdownKeys?: readonly string[];
  /** Names of metrics, such as `["pass@3", "pass^3", "avg"]`; the first carries the verdict. `[]`, null or left out: `mean_reward` and `pass_rate`. */
  readonly metrics?: readonly string[] | null;
  /** The metrics that names refer to; default `benchmarkMetrics`. */
  readonly registry?: MetricRegistry;
  readonly chatTemplate?: BenchmarkChatTemplate;
  /** The share of completions without a grade above which a measurement is `failed`; default 0.1. */
  readonly maxErrorShare?: number;
  /** The price of tokens. Default: the cost is unknown. */
  readonly price?: JudgePrice;
  /** The model's name in snapshots; default the model's identity. */
  readonly modelName?: string;
  /** The run's name, a folder in stores. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly runId?: string;
  /** The benchmark's name in stores; default `name`. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly benchmarkId?: string;
}

const positiveOrNull = "a positive integer, or null for all";
const share = "a share from 0 to 1";
const price = "{ inputPerMillion, outputPerMillion }, each 0 or more";
const amount = numberFromZero(price);
export const priceShape = { inputPerMillion: amount, outputPerMillion: amount };

/** Schemas of the options. */
export const benchmarkShape = {
  name: nameSchema,
  benchmark: filledString("the path of a folder"),
  engine: z
    .custom<BenchmarkEngine | "" | null>(
      (value) => value === "" || value === null || isEngine(value),
      'an object with `generate`, a function, or "" for the measured model',
    )
    .meta({ fix: "Give a model, { generate(requests, options) }, or (prompts, sampling) => completions." })
    .optional(),
  maxTokens: positiveInteger.default(256),
  temperature: numberFromZero("0 (greedy) or more").optional(),
  limit: z.int(positiveOrNull).positive(positiveOrNull).nullable().default(null),
  numSamples: positiveInteger.default(1),
  nConcurrent: positiveInteger.default(8),
  breakdownKeys: z.array(z.string().min(1), "an array of keys of the tasks' metadata").default([]),
  metrics: z
    .array(z.string().min(1), "an array of names of metrics")
    .meta({ fix: 'Name a metric, such as "pass_rate", or leave it out for mean_reward and pass_rate.' })
    .nullable()
    .default([]),
  registry: z
    .custom<MetricRegistry>((value) => typeof value === "object" && value !== null, "metrics by name")
    .optional(),
  chatTemplate: z.strictObject(chatTemplateShape).default({}),
  maxErrorShare: z.number(share).min(0, share).max(1, share).default(0.1),
  price: z.strictObject(priceShape, price).nullable().default(null),
  modelName: filledString("a non-empty string").nullable().default(null),
  runId: nameSchema.nullable().default(null),
  benchmarkId: nameSchema.nullable().default(null),
} satisfies Record<keyof BenchmarkOptions, z.ZodType>;

type Parsed = z.output<z.ZodObject<typeof benchmarkShape>>;

/** Checked options, with their defaults. */
export interface CompleteOptions extends Omit<
  Parsed,
  "metrics" | "registry" | "engine" | "temperature" | "chatTemplate"
> {
  readonly temperature: number;
  readonly metrics: readonly NamedMetric[];
  readonly engine: BenchmarkEngine | null;
  readonly chatTemplate: BenchmarkChatTemplate;
}

/**
 * Checks the options and fills in their defaults.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function completeOptions(where: string, options: BenchmarkOptions): CompleteOptions {
  const parsed = parseOptions(where, z.strictObject(benchmarkShape), options);
  const { registry = benchmarkMetrics, engine, ...rest } = parsed;
  const metrics = findMetrics(where, rest.metrics ?? [], registry);
  const numSamples = Math.max(rest.numSamples, ...metrics.map(({ k }) => k ?? 1));
  const { temperature = numSamples > 1 ? 1 : 0 } = rest;
  if (numSamples > 1 && temperature === 0) {
    const raising = metrics.findIndex(({ k }) => k === numSamples);
    throw configError({
      where,
      ...(rest.numSamples === numSamples
        ? { path: ["numSamples"], got: `${numSamples} at temperature 0` }
        : { path: ["metrics", raising], got: `"${metrics[raising]!.name}" at temperature 0` }),
      expected: "one completion per task, or a temperature above 0",
      fix: "Raise the temperature: greedy completions of a task are all equal.",
    });
  }
  return {
    ...rest,
    numSamples,
    temperature,
    engine: engine || null,
    chatTemplate: options.chatTemplate ?? {},
    metrics,
  };
}
