import { PeriodicEvalError } from "@periodic-eval/core";
import { configError, nearest, parseOptions, positiveInteger } from "@periodic-eval/contracts/options";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import * as z from "zod";
import { dropoutRate, type CheckpointLM } from "../checkpoint/model.ts";
import { familyOf } from "../families/registry.ts";
import { hubNameOf } from "@periodic-eval/data";
import { fastRandom } from "../ops/fast-random.ts";
import {
  lastParts,
  planAdapter,
  type AdapterPlan,
  type AdapterTensor,
  modulesOf,
  type ModelShape,
  type Modules,
} from "./adapter-plan.ts";
import { parseLoraConfig, type AdapterConfig, type LoraConfig } from "./lora-config.ts";
import { adaptable, createLora, type LoraLM } from "./lora-model.ts";

export interface LoraOptions {
  /** At most the larger side of each linear map with an adapter. Default: 8. */
  readonly rank?: number;
  /** The adapter's output is scaled by alpha / rank. Default: 16. */
  readonly alpha?: number;
  /** Probability in [0, 1) of dropping an input of the adapter in training. Default: 0. */
  readonly dropout?: number;
  /**
   * Linear maps, by the ends of their names (`["q_proj", "v_proj"]`) or by a Python regular expression that matches the
   * whole name. Default: `"all-linear"`, all except the head.
   */
  readonly targetModules?: string | readonly string[];
  /** Indexes of layers, from 0. Default: all. */
  readonly layersToTransform?: readonly number[];
  /** Ranks that differ from `rank`, by the end of a target's name or a regular expression for it. */
  readonly rankPattern?: Readonly<Record<string, number>>;
  /** Alphas that differ from `alpha`, by the same keys. */
  readonly alphaPattern?: Readonly<Record<string, number>>;
  /** Scales by alpha / √rank, so that large ranks learn as fast as small ones (Kalajdzievski 2023). Default: false. */
  readonly rsLora?: boolean;
  /** Determines the initial A: the same seed gives the same bits on every backend. Default: "0". */
  readonly seed?: string;
}

const positiveNumber = z.number("a number above 0").positive("a number above 0");
const targets = '"all-linear", names of linear maps, or a regular expression';
const layers = "a non-empty array of layer indexes";

const optionsSchema = z.strictObject({
  rank: positiveInteger
    .default(8)
    .describe("Rank of the adapter: at most the larger side of each linear map with an adapter."),
  alpha: positiveNumber.default(16).describe("The adapter's output is scaled by alpha / rank."),
  dropout: dropoutRate
    .default(0)
    .describe("Probability in [0, 1) of dropping an input of the adapter in training."),
  targetModules: z
    .union([z.string().min(1), z.array(z.string().min(1)).min(1)], targets)
    .default("all-linear")
    .describe(
      "Linear maps, by the ends of their names or by a regular expression that matches the whole name. all-linear: all except the head.",
    ),
  layersToTransform: z
    .array(z.int().nonnegative(), layers)
    .min(1, layers)
    .optional()
    .describe("Indexes of layers, from 0. Default: all."),
  rankPattern: z
    .record(z.string(), positiveInteger, "an object of positive integers by module")
    .default({})
    .describe("Ranks that differ from `rank`, by the end of a target's name or a regular expression for it."),
  alphaPattern: z
    .record(z.string(), positiveNumber, "an object of numbers above 0 by module")
    .default({})
    .describe("Alphas that differ from `alpha`, by the same keys."),
  rsLora: z
    .boolean()
    .default(false)
    .describe("Scales by alpha / √rank, so that large ranks learn as fast as small ones."),
  seed: z.string().default("0").describe("Determines the adapter's initial weights."),
} satisfies Record<keyof LoraOptions, z.ZodType>);

/** Returns the JSON Schema (draft 2020-12) of `LoraOptions`, for editors. */
export const loraJsonSchema = (): Readonly<Record<string, unknown>> =>
  z.toJSONSchema(optionsSchema, { io: "input" });

type ParsedOptions = z.output<typeof optionsSchema>;

const where = "withLora options";

/**
 * Adds a new adapter to a model. It changes nothing until it is trained: B is 0, and A is uniform in ±1/√inputs, the
 * distribution of PEFT 0.21. The model's own variables are shared, not copied, and get no gradients. The caller disposes
 * both the result and the model.
 *
 * @throws PeriodicEvalError `config` for a wrong option, or for modules that the model does not have.
 */
export function withLora(model: CheckpointLM, options: LoraOptions = {}): LoraLM {
  const parts = adaptable(model, "withLora");
  const { plan, config, seed } = planLora(options, parts);
  const name = `rank ${String(config["r"])}, alpha ${String(config["lora_alpha"])}`;
  return createLora(model, parts, { plan, config, name, values: (tensor) => initialValues(tensor, seed) });
}

/** Plans a new adapter without creating it. Throws as `withLora`. */
export function planLora(
  requested: LoraOptions,
  shape: ModelShape,
): { readonly plan: AdapterPlan; readonly config: AdapterConfig; readonly seed: string } {
  const options = parseOptions(where, optionsSchema, requested);
  const modules = modulesOf(shape.description, shape.weights, familyOf(shape.config, "withLora"));
  checkTargets(options, modules);
  const config = configOf(options, modules, shape);
  const plan = withOptionPaths(() => {
    const parsed = parseLoraConfig(config, "withLora");
    const planned = planAdapter(parsed, modules, "withLora", false);
    checkPatterns(parsed, planned);
    return planned;
  });
  checkRanks(options, plan);
  return { plan, config, seed: options.seed };
}

/** Returns PEFT's `adapter_config.json` for the options. */
function configOf(options: ParsedOptions, modules: Modules, { config, folder }: ModelShape): AdapterConfig {
  const { targetModules, layersToTransform } = options;
  const isAll = typeof targetModules === "string" && targetModules.toLowerCase() === "all-linear";
  return {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: folder === null ? null : (hubNameOf(folder) ?? folder),
    revision: null,
    inference_mode: true,
    r: options.rank,
    lora_alpha: options.alpha,
    lora_dropout: options.dropout,
    // PEFT writes names too, and more programs understand them than "all-linear".
    target_modules: isAll ? lastParts(modules) : targetModules,
    exclude_modules: null,
    layers_to_transform: layersToTransform ?? null,
    layers_pattern: null,
    rank_pattern: options.rankPattern,
    alpha_pattern: options.alphaPattern,
    use_rslora: options.rsLora,
    use_dora: false,
    lora_bias: false,
    bias: "none",
    modules_to_save: null,
    init_lora_weights: true,
    fan_in_fan_out: familyOf(config, "withLora").names.matrices === "inOut",
  };
}

/** Returns 0 for B; for A torch's kaiming_uniform with a = √5, which is uniform in ±1/√inputs. */
function initialValues({ name, shape }: AdapterTensor, seed: string): Float32Array {
  const [rows, columns] = shape as [number, number];
  const values = new Float32Array(rows * columns);
  if (!name.endsWith(".lora_A.weight")) return values;
  const random = fastRandom(namedStream(seedOf(seed, name)));
  const bound = 1 / Math.sqrt(columns);
  return values.map(() => (2 * random() - 1) * bound);
}

/** Throws for a layer or a name that matches no module; PEFT ignores it silently. */
function checkTargets({ targetModules, layersToTransform = [] }: ParsedOptions, modules: Modules): void {
  const indexes = new Set(modules.linears.flatMap(({ name }) => /\.(\d+)\./.exec(name)?.[1] ?? []));
  for (const [i, value] of layersToTransform.entries()) {
    if (indexes.has(String(value))) continue;
    const expected = `layers from 0 to ${indexes.size - 1}`;
    throw configError({ where, path: ["layersToTransform", i], value, expected });
  }
  if (typeof targetModules === "string") return;
  const names = modules.linears.map(({ name }) => name);
  const ends = [...lastParts(modules), modules.head];
  for (const [i, end] of targetModules.entries()) {
    if (names.some((name) => name === end || name.endsWith(`.${end}`))) continue;
    throw configError({
      where,
      path: ["targetModules", i],
      value: end,
      expected: ends.map((name) => `"${name}"`).join(" or "),
      fix: `Write "${nearest(end, ends) ?? ends[0]}".`,
    });
  }
}

/** Throws for a pattern that matches no target; PEFT ignores it silently. */
function checkPatterns({ patterns }: LoraConfig, { adapters }: AdapterPlan): void {
  const names = adapters.map(({ module }) => module.name);
  const ends = [...new Set(names.map((name) => name.slice(name.lastIndexOf(".") + 1)))].join(", ");
  for (const [option, key] of [
    ["rankPattern", "rank_pattern"],
    ["alphaPattern", "alpha_pattern"],
  ] as const) {
    const unused = patterns[key].find(({ matches }) => !names.some(matches));
    if (unused === undefined) continue;
    throw configError({
      where,
      path: [option, unused.name],
      got: `the name "${unused.name}", which matches no target`,
      expected: `the end of a target's name, or a regular expression for it: ${ends}`,
    });
  }
}

/** Throws for a rank beyond the size of a map: it learns no more, and its matrices could request all memory. */
function checkRanks({ rank, rankPattern }: ParsedOptions, { adapters }: AdapterPlan): void {
  for (const { module, rank: value, pattern } of adapters) {
    const most = Math.max(module.inputs, module.outputs);
    if (value <= most) continue;
    const { name, inputs, outputs } = module;
    const path = pattern === null ? ["rank"] : ["rankPattern", pattern];
    const expected = `at most ${most} for ${name}, a map from ${inputs} numbers to ${outputs}`;
    throw configError({ where, path, value: pattern === null ? rank : rankPattern[pattern], expected });
  }
}

const optionByKey: Readonly<Record<string, keyof LoraOptions>> = {
  target_modules: "targetModules",
  layers_to_transform: "layersToTransform",
  rank_pattern: "rankPattern",
  alpha_pattern: "alphaPattern",
};

/** Turns an error about a key of PEFT's configuration into one about the option behind it. */
function withOptionPaths<T>(plan: () => T): T {
  try {
    return plan();
  } catch (cause) {
    if (!PeriodicEvalError.is(cause, "model")) throw cause;
    const { got, expected, fix } = cause;
    const path = cause.path.map((key, i) => (i === 0 ? (optionByKey[key] ?? key) : key));
    throw configError({ where, path, got, expected, fix, cause });
  }
}
