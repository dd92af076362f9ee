import { isRecord, errorMessage } from "@periodic-eval/contracts/options";
import { ConfigReader, type HuggingFaceConfig } from "../families/config/config-reader.ts";
import { modelError, quoteShort } from "../folder/model-error.ts";

/** PEFT's `adapter_config.json`. */
export type AdapterConfig = HuggingFaceConfig;

/** A parsed PEFT configuration. Modules have PEFT's names. */
export interface LoraConfig {
  /** The dropout rate of A's input. */
  readonly dropout: number;
  /** Modules that are trained as a whole, by the ends of their names. */
  readonly modulesToSave: readonly string[];
  /** Whether `target_modules` is "all-linear", which means only linear maps. */
  readonly isAllLinear: boolean;
  isTarget(module: string): boolean;
  /** Returns a module's rank and the key of `rank_pattern` that sets it; null if `r` does. */
  rankOf(module: string): { readonly rank: number; readonly pattern: string | null };
  /** Returns α/r, or α/√r with `use_rslora` (Kalajdzievski 2023). */
  scaleOf(module: string): number;
  /** The entries of `rank_pattern` and `alpha_pattern`. */
  readonly patterns: Readonly<Record<PatternKey, readonly NumberPattern[]>>;
}

type PatternKey = "rank_pattern" | "alpha_pattern";

/** PEFT's `get_pattern_key`: the first entry that matches the end of a module's name sets its number. */
export interface NumberPattern {
  /** The end of a module's name, or a regular expression for it. */
  readonly name: string;
  readonly value: number;
  matches(module: string): boolean;
}

/** Keys that change no number, or only the initial ones. */
const harmless: readonly RegExp[] = [
  /^(peft_version|auto_mapping|base_model_name_or_path|revision|inference_mode|megatron_core|qalora_group_size)$/,
  // PEFT uses the class of the layer instead.
  /^fan_in_fan_out$/,
  /^eva_config$/,
];

/** Options that must be off: null, false or empty. */
const unsupported = [
  "use_dora",
  "use_qalora",
  "use_bdlora",
  "alora_invocation_tokens",
  "arrow_config",
  "corda_config",
  "kasa_config",
  "lora_ga_config",
  "monteclora_config",
  "velora_config",
  "loftq_config",
  "megatron_config",
  "layer_replication",
  "trainable_token_indices",
  "target_parameters",
  "ensure_weight_tying",
  "runtime_config",
];

/** Initializations that do not change the model's own weights. */
const initializations = [true, false, "gaussian", "orthogonal", "eva"];

/**
 * Parses a configuration of PEFT 0.21 key by key. Rejects unsupported options by name, and unknown keys unless they are
 * empty.
 *
 * @param where Names the file or the call in errors.
 * @throws PeriodicEvalError `model`, with the key as its `path`.
 */
export function parseLoraConfig(json: AdapterConfig, where: string): LoraConfig {
  const config = new ConfigReader(json, where);
  const errorOf = (key: string): PatternError => patternError(where, key);
  if (config.get("peft_type") !== "LORA") throw config.unsupportedError("peft_type", '"LORA"');
  config.only("task_type", "CAUSAL_LM");
  config.only("bias", "none");
  config.only("lora_bias", false);
  config.only("init_lora_weights", ...initializations);
  for (const key of unsupported)
    if (!isEmpty(config.get(key))) throw config.unsupportedError(key, "null, false or an empty value");
  // PEFT applies its defaults to absent keys only, and throws for null.
  const rank = config.positiveIntegerOrNull("r", 8);
  if (rank === null) throw config.valueError("r", "a positive integer");
  const alpha = config.positiveNumberOrNull("lora_alpha", 8);
  if (alpha === null) throw config.valueError("lora_alpha", "a number above 0");
  const dropout = config.given("lora_dropout", 0);
  if (typeof dropout !== "number" || !(dropout >= 0 && dropout < 1))
    throw config.valueError("lora_dropout", "a number in [0, 1)");
  const isStabilized = config.boolean("use_rslora", false);
  const modulesToSave = names(config, "modules_to_save") ?? [];
  const targets = moduleTest(config, "target_modules", errorOf("target_modules"));
  if (targets === null) throw config.valueError("target_modules", targetsExpected);
  const isExcluded = moduleTest(config, "exclude_modules", errorOf("exclude_modules")) ?? nothing;
  const inLayer = layerTest(config, errorOf("layers_pattern"));
  if (inLayer !== null && targets.isPattern)
    throw config.unsupportedError("layers_to_transform", "target_modules as an array of names");
  const isWholeRank = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;
  const isPositive = (value: unknown) => typeof value === "number" && value > 0 && value < Infinity;
  const ranks = numbersByModule(config, "rank_pattern", isWholeRank, errorOf("rank_pattern"));
  const alphas = numbersByModule(config, "alpha_pattern", isPositive, errorOf("alpha_pattern"));
  // Later versions also write options that are switched off: null, false or empty.
  config.finish(harmless, isEmpty, "only supported keys of PEFT's LoraConfig");
  const isSaved = (module: string) => modulesToSave.some((name) => endsWith(module, name));
  const rankOf = (module: string) => {
    const match = ranks.find(({ matches }) => matches(module));
    return { rank: match?.value ?? rank, pattern: match?.name ?? null };
  };
  return {
    dropout,
    modulesToSave,
    isAllLinear: String(json["target_modules"]).toLowerCase() === "all-linear",
    isTarget(module) {
      if (isExcluded(module) || isSaved(module) || !targets(module)) return false;
      // As in PEFT, a full name selects its module in any layer.
      return inLayer === null || targets.namesWhole(module) || inLayer(module);
    },
    rankOf,
    scaleOf(module) {
      const moduleAlpha = alphas.find(({ matches }) => matches(module))?.value ?? alpha;
      return moduleAlpha / (isStabilized ? Math.sqrt(rankOf(module).rank) : rankOf(module).rank);
    },
    patterns: { rank_pattern: ranks, alpha_pattern: alphas },
  };
}

const targetsExpected = '"all-linear", a regular expression, or an array of names';

function isEmpty(value: unknown): boolean {
  if (value === null || value === false) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

const patternError =
  (where: string, key: string): PatternError =>
  (got) =>
    modelError({
      where: `${where}, ${key}`,
      path: [key],
      got,
      expected: "a regular expression that means the same in Python and JavaScript",
      fix: "List the names of the modules in an array.",
    });

/** Returns whether a key selects a module. */
interface ModuleTest {
  (module: string): boolean;
  /** Whether the key is a regular expression or "all-linear". */
  readonly isPattern: boolean;
  /** Whether the key lists the full name of the module. */
  namesWhole(module: string): boolean;
}

const nothing: ModuleTest = Object.assign(() => false, { isPattern: false, namesWhole: () => false });

function moduleTest(config: ConfigReader, key: string, errorFor: PatternError): ModuleTest | null {
  const value = config.get(key);
  if (typeof value === "string") {
    const isAll = key === "target_modules" && value.toLowerCase() === "all-linear";
    const test = isAll ? isInLayer : modulePattern(value, errorFor);
    return Object.assign((module: string) => test(module), { isPattern: true, namesWhole: () => false });
  }
  const list = names(config, key);
  if (list === null || list.length === 0) return null;
  const test = (module: string) => list.some((name) => endsWith(module, name));
  return Object.assign(test, { isPattern: false, namesWhole: (module: string) => list.includes(module) });
}

/** Whether "all-linear" includes a linear map: all except the head. */
const isInLayer = (module: string): boolean => /\.\d+\./.test(module);

const endsWith = (module: string, name: string) => module === name || module.endsWith(`.${name}`);

function names(config: ConfigReader, key: string): readonly string[] | null {
  const value = config.get(key);
  if (value === null) return null;
  if (!Array.isArray(value) || !value.every((name) => typeof name === "string" && name !== ""))
    throw config.valueError(key, key === "modules_to_save" ? "an array of names" : targetsExpected);
  return value as readonly string[];
}

/** Returns a test whether a module is in one of the requested layers; null if all layers are requested. */
function layerTest(config: ConfigReader, errorFor: PatternError): ((module: string) => boolean) | null {
  const requested = config.get("layers_to_transform");
  const list = typeof requested === "number" ? [requested] : (requested ?? []);
  if (!Array.isArray(list) || !list.every((layer) => Number.isSafeInteger(layer) && (layer as number) >= 0))
    throw config.valueError("layers_to_transform", "the index of a layer from 0, or an array of them");
  const stack = config.get("layers_pattern");
  const stacks = typeof stack === "string" ? [stack] : (names(config, "layers_pattern") ?? []);
  if (list.length === 0) {
    if (stacks.some((name) => name !== ""))
      throw config.valueError("layers_pattern", "no layers_pattern without layers_to_transform");
    return null;
  }
  const layers = new Set(list as readonly number[]);
  const holders = stacks
    .filter((name) => name !== "")
    .map((name) => modulePattern(`(?:.*\\.)?(?:${name})`, errorFor));
  return (module) => {
    const parts = module.split(".");
    // The first number after a matching name is the layer; without a pattern, the first number after two names.
    const at = parts.findIndex((part, i) => {
      if (!/^\d+$/.test(part) || i === parts.length - 1) return false;
      const before = parts.slice(0, i).join(".");
      return holders.length === 0 ? i >= 2 : holders.some((matches) => matches(before));
    });
    return at !== -1 && layers.has(Number(parts[at]));
  };
}

function numbersByModule(
  config: ConfigReader,
  key: PatternKey,
  isRight: (value: unknown) => boolean,
  errorFor: PatternError,
): readonly NumberPattern[] {
  const value = config.get(key) ?? {};
  const entries = isRecord(value) ? Object.entries(value) : null;
  const wrong = entries?.find(([, number]) => !isRight(number));
  if (entries === null || wrong !== undefined) {
    const kind = key === "rank_pattern" ? "positive integers" : "numbers above 0";
    if (wrong !== undefined)
      throw config.valueError(key, `${kind}, not ${quoteShort(wrong[1])} for ${quoteShort(wrong[0])}`);
    throw config.valueError(key, `an object of ${kind} by module`);
  }
  return entries.map(([name, number]) => {
    return { name, value: number as number, matches: modulePattern(`(.*\\.)?(${name})$`, errorFor) };
  });
}

/** Returns whether a module's name matches. */
type ModulePattern = (name: string) => boolean;

/** Returns the error for an invalid pattern; `got` names the problem. */
type PatternError = (got: string) => Error;

/** A part of a pattern whose syntax may differ between Python and JavaScript, or any character. */
const outside = /\\[^]?|\[\^?\]?|\(\?P<|\(\?[^:=!<]|\{,\d*\}|[*+?}]\+|[^]/y;
const inside = /\\[^]?|[^]/y;

/**
 * Compiles a regular expression with the meaning of Python's `re.fullmatch` for the names of modules, which are ASCII. Throws for
 * syntax that JavaScript lacks or reads differently: references, flags, possessive repetitions, atomic groups, escaped letters
 * other than `\d \w \s \b \A \Z` and their opposites.
 */
export function modulePattern(text: string, errorFor: PatternError): ModulePattern {
  let source = "";
  let isInSet = false;
  for (let at = 0; at < text.length;) {
    const token = isInSet ? inside : outside;
    token.lastIndex = at;
    const [part] = token.exec(text)!;
    at += part.length;
    source += translated(part, isInSet, errorFor);
    if (part === "]") isInSet = false;
    else if (!isInSet && part.startsWith("[")) isInSet = true;
  }
  try {
    const pattern = new RegExp(`^(?:${source})$`);
    return (name) => pattern.test(name);
  } catch (cause) {
    throw errorFor(errorMessage(cause));
  }
}

function translated(part: string, isInSet: boolean, errorFor: PatternError): string {
  if (part.startsWith("\\")) {
    if (!isInSet && part === String.raw`\A`) return "^";
    if (!isInSet && part === String.raw`\Z`) return "$";
    // Every other escaped letter or digit has a meaning in Python that it may not have in JavaScript.
    if (/^\\\w/.test(part) && !(isInSet ? /[dDwWsS]/ : /[dDwWsSbB]/).test(part)) throw errorFor(`"${part}"`);
    return part;
  }
  if (isInSet) return part;
  if (part === "(?P<") return "(?<";
  if (part.startsWith("(?") || (part.length === 2 && part.endsWith("+"))) throw errorFor(`"${part}"`);
  if (part.startsWith("{,")) return `{0${part.slice(1)}`;
  // In Python, the first `]` of a set is a member.
  if (part.startsWith("[")) return part.replace("]", "\\]");
  return part;
}
