import { PeriodicEvalError } from "@periodic-eval/core";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import { checkKeys, checkWord, quoteValue } from "@periodic-eval/core/internal";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { familyOf } from "../families/registry.ts";
import { hubNameOf } from "../hub/cache.ts";
import { fastRandom } from "../ops/fast-random.ts";
import { lastParts, planAdapter, type AdapterPlan, type AdapterTensor } from "./adapter-plan.ts";
import { parseLoraConfig, type AdapterConfig, type LoraConfig } from "./lora-config.ts";
import { adaptable, createLora, type LoraLM } from "./lora-model.ts";
import { modulesOf, type ModelShape, type Modules } from "./modules.ts";

export interface LoraOptions {
  /** Default 8; at most the larger side of each map that it is put on. */
  readonly rank?: number;
  /** What is learned is scaled by alpha / rank. Default 16. */
  readonly alpha?: number;
  /** Probability in [0, 1) of dropping what an adapter reads, in training; default 0. */
  readonly dropout?: number;
  /**
   * Linear maps, by the ends of their names (`["q_proj", "v_proj"]`) or by a regular expression of Python that the whole
   * name matches. Default `"all-linear"`: all but the head.
   */
  readonly targetModules?: string | readonly string[];
  /** Layers, by number from 0; default all. */
  readonly layersToTransform?: readonly number[];
  /** Other ranks, by the end of a target's name or an expression for it. */
  readonly rankPattern?: Readonly<Record<string, number>>;
  /** Other alphas, likewise. */
  readonly alphaPattern?: Readonly<Record<string, number>>;
  /** Scales by alpha / √rank, so that large ranks learn as fast as small ones (Kalajdzievski 2023); default false. */
  readonly rsLora?: boolean;
  /** Names what A begins with: the same seed gives the same bits on every engine. Default "0". */
  readonly seed?: string;
}

const known = {
  rank: true,
  alpha: true,
  dropout: true,
  targetModules: true,
  layersToTransform: true,
  rankPattern: true,
  alphaPattern: true,
  rsLora: true,
  seed: true,
} as const satisfies Record<keyof LoraOptions, true>;

/**
 * The model with a new adapter, which changes nothing until it is trained: B is 0, A uniform in ±1/√inputs, as PEFT 0.21
 * draws it (from streams of ours). The model's own variables are shared, not copied, and get no gradients. The caller
 * disposes both.
 *
 * @throws PeriodicEvalError `config` for a wrong option, or for modules that the model does not have.
 */
export function withLora(model: CheckpointLM, options: LoraOptions = {}): LoraLM {
  const parts = adaptable(model, "withLora");
  const { plan, config } = planLora(options, parts);
  const { seed = "0" } = options;
  const name = `rank ${String(config["r"])}, alpha ${String(config["lora_alpha"])}`;
  return createLora(model, parts, { plan, config, name, values: (tensor) => initialValues(tensor, seed) });
}

/** What a new adapter will be, of which nothing is made. Throws as `withLora`. */
export function planLora(
  options: LoraOptions,
  shape: ModelShape,
): { readonly plan: AdapterPlan; readonly config: AdapterConfig } {
  checkOptions(options);
  const modules = modulesOf(shape.description, shape.weights, familyOf(shape.config, "withLora"));
  checkNames(options, modules);
  const config = configOf(options, modules, shape);
  const plan = asOptions(() => {
    const parsed = parseLoraConfig(config, "withLora");
    const planned = planAdapter(parsed, modules, "withLora", false);
    checkPatterns(parsed, planned);
    return planned;
  });
  checkRanks(options, plan);
  return { plan, config };
}

/** What PEFT's `adapter_config.json` says of it. */
function configOf(options: LoraOptions, modules: Modules, { config, folder }: ModelShape): AdapterConfig {
  const { targetModules = "all-linear", layersToTransform } = options;
  const isAll = typeof targetModules === "string" && targetModules.toLowerCase() === "all-linear";
  return {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: folder === null ? null : (hubNameOf(folder) ?? folder),
    revision: null,
    inference_mode: true,
    r: options.rank ?? 8,
    lora_alpha: options.alpha ?? 16,
    lora_dropout: options.dropout ?? 0,
    // By name, as PEFT writes it: programs that read adapters know names better than the word.
    target_modules: isAll ? lastParts(modules) : targetModules,
    exclude_modules: null,
    layers_to_transform: layersToTransform ?? null,
    layers_pattern: null,
    rank_pattern: options.rankPattern ?? {},
    alpha_pattern: options.alphaPattern ?? {},
    use_rslora: options.rsLora ?? false,
    use_dora: false,
    lora_bias: false,
    bias: "none",
    modules_to_save: null,
    init_lora_weights: true,
    fan_in_fan_out: familyOf(config, "withLora").names.matrices === "inOut",
  };
}

/** kaiming_uniform with a = √5 of torch for A, which is uniform in ±1/√inputs; 0 for B. */
function initialValues({ name, shape }: AdapterTensor, seed: string): Float32Array {
  const [rows, columns] = shape as [number, number];
  const values = new Float32Array(rows * columns);
  if (!name.endsWith(".lora_A.weight")) return values;
  const random = fastRandom(namedStream(seedOf(seed, name)));
  const bound = 1 / Math.sqrt(columns);
  return values.map(() => (2 * random() - 1) * bound);
}

function checkOptions(options: LoraOptions): void {
  checkKeys("withLora", options, Object.keys(known));
  const { rank = 8, alpha = 16, dropout = 0, seed = "0", targetModules, layersToTransform } = options;
  const isPositive = (value: number) => Number.isFinite(value) && value > 0;
  const isText = (value: unknown) => typeof value === "string" && value !== "";
  if (!Number.isSafeInteger(rank) || rank < 1) throw wrong("rank", rank, "a whole number above 0");
  if (!isPositive(alpha)) throw wrong("alpha", alpha, "a number above 0");
  if (!(dropout >= 0 && dropout < 1)) throw wrong("dropout", dropout, "a probability in [0, 1)");
  if (typeof seed !== "string") throw wrong("seed", seed, "a text");
  const isList = Array.isArray(targetModules) && targetModules.length > 0 && targetModules.every(isText);
  if (targetModules !== undefined && !isList && !isText(targetModules))
    throw wrong(
      "targetModules",
      targetModules,
      '"all-linear", names of linear maps, or a regular expression',
    );
  const isLayers = Array.isArray(layersToTransform) && layersToTransform.length > 0;
  if (layersToTransform !== undefined && !isLayers)
    throw wrong("layersToTransform", layersToTransform, "numbers of layers");
  for (const [option, isRight, expected] of [
    ["rankPattern", (value: number) => Number.isSafeInteger(value) && value > 0, "whole numbers above 0"],
    ["alphaPattern", isPositive, "numbers above 0"],
  ] as const) {
    const pattern: unknown = options[option];
    if (pattern === undefined) continue;
    const isObject = typeof pattern === "object" && pattern !== null && !Array.isArray(pattern);
    if (!isObject || !Object.values(pattern).every(isRight))
      throw wrong(option, pattern, `an object of ${expected} by module`);
  }
}

/** A name that fits no module would be left out in silence. */
function checkNames({ targetModules, layersToTransform }: LoraOptions, modules: Modules): void {
  const layers = new Set(modules.linears.flatMap(({ name }) => /\.(\d+)\./.exec(name)?.[1] ?? []));
  const absent = layersToTransform?.find((layer) => !layers.has(String(layer)));
  if (absent !== undefined) throw wrong("layersToTransform", absent, `layers from 0 to ${layers.size - 1}`);
  if (typeof targetModules === "string" || targetModules === undefined) return;
  const names = modules.linears.map(({ name }) => name);
  const unknown = targetModules.find(
    (end) => !names.some((name) => name === end || name.endsWith(`.${end}`)),
  );
  if (unknown === undefined) return;
  const ends = [...lastParts(modules), modules.head];
  checkWord("withLora targetModules", unknown, ends);
}

/** As a name of `targetModules`: PEFT would pass it over. */
function checkPatterns({ patterns }: LoraConfig, { adapters }: AdapterPlan): void {
  const names = adapters.map(({ module }) => module.name);
  for (const [option, key] of [
    ["rankPattern", "rank_pattern"],
    ["alphaPattern", "alpha_pattern"],
  ] as const) {
    const unfit = patterns[key].find(({ matches }) => !names.some(matches));
    if (unfit === undefined) continue;
    const ends = new Set(names.map((name) => name.slice(name.lastIndexOf(".") + 1)));
    throw wrong(
      option,
      unfit.name,
      `the end of a target's name, or an expression for one: ${[...ends].join(", ")}`,
    );
  }
}

/** A larger one learns no more, and its matrices could ask for all memory. */
function checkRanks(options: LoraOptions, { adapters }: AdapterPlan): void {
  for (const { module, rank } of adapters) {
    const most = Math.max(module.inputs, module.outputs);
    if (rank <= most) continue;
    const { name, inputs, outputs } = module;
    const option = rank === (options.rank ?? 8) ? "rank" : "rankPattern";
    throw wrong(option, rank, `at most ${most} for ${name}, a map from ${inputs} numbers to ${outputs}`);
  }
}

/** What the configuration says wrongly, the caller has said. */
function asOptions<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!PeriodicEvalError.is(error, "model")) throw error;
    const { where, got, expected, fix } = error;
    throw new PeriodicEvalError({ code: "config", where, got, expected, fix, cause: error });
  }
}

function wrong(option: keyof LoraOptions, got: unknown, expected: string): PeriodicEvalError {
  const fix = "Correct the option, or leave it out for its default.";
  return new PeriodicEvalError({
    code: "config",
    where: `withLora ${option}`,
    got: quoteValue(got),
    expected,
    fix,
  });
}
