import type { RotaryDescription } from "../../decoder/description.ts";
import { ConfigReader } from "./config-reader.ts";
import type { LayerType } from "./model-options.ts";

export interface RopeOptions {
  readonly headDim: number;
  readonly contextLength: number;
  readonly theta: ThetaOptions;
  /** Families that rotate a part of each head: its key in the layout of transformers 4, and its default. */
  readonly partial?: { readonly key: string; readonly fallback: number };
  /** Families with `original_max_position_embeddings` outside the rotary options: its default. */
  readonly originalContext?: number;
  /** Default: `"halves"`. */
  readonly pairs?: RotaryDescription["pairs"];
  /** Rotary options that the caller reads. */
  readonly alsoRead?: readonly string[];
  /** Maps older names to kinds. */
  readonly aliases?: Readonly<Record<string, Kind>>;
}

/** Default of the base; `key` is its name in the layout of transformers 4, by default `rope_theta`; null for none. */
interface ThetaOptions {
  readonly key?: string | null;
  readonly fallback: number;
}

type Kind = (typeof kinds)[number];

/**
 * Reads the rotary options of a configuration in either layout: `rope_parameters` (transformers 5), or `rope_scaling` with
 * `rope_theta` and other keys outside it (transformers 4).
 */
export function rotary(config: ConfigReader, options: RopeOptions): RotaryDescription {
  const parameters = config.nested("rope_parameters") ?? config.nested("rope_scaling");
  return rotaryOf(config, parameters, options);
}

/**
 * Reads the rotary options of a family whose layers rotate by their type: `rope_parameters` by type (transformers 5), or
 * `rope_scaling` and `rope_theta`, which apply to full attention only (transformers 4).
 */
export function rotationsByType(
  config: ConfigReader,
  sizes: Pick<RopeOptions, "headDim" | "contextLength">,
  thetas: Readonly<Record<LayerType, ThetaOptions>>,
): Readonly<Record<LayerType, RotaryDescription>> {
  const byType = config.nested("rope_parameters");
  const full = byType === null ? config.nested("rope_scaling") : byType.nested("full_attention");
  const sliding = byType?.nested("sliding_attention") ?? null;
  const rotations = {
    full_attention: rotaryOf(config, full, { ...sizes, theta: thetas.full_attention }),
    sliding_attention: rotaryOf(config, sliding, { ...sizes, theta: thetas.sliding_attention }),
  };
  byType?.finish();
  return rotations;
}

/**
 * Reads the rotary options in `nested`; null stands for a configuration without such an object. Follows transformers 5.23
 * `modeling_rope_utils.py`: `default`, `linear`, `dynamic`, `yarn`, `longrope` and `llama3`.
 *
 * @throws PeriodicEvalError `model` for any other kind.
 */
export function rotaryOf(
  config: ConfigReader,
  nested: ConfigReader | null,
  options: RopeOptions,
): RotaryDescription {
  const parameters = nested ?? new ConfigReader({}, config.at("rope_parameters"));
  const { key = "rope_theta", fallback } = options.theta;
  const oldTheta = key === null || config.get(key) === null ? null : config.positiveNumber(key);
  const theta = parameters.positiveNumber("rope_theta", oldTheta ?? fallback);
  if (oldTheta !== null && oldTheta !== theta)
    throw config.valueError(key!, `${theta}, as in rope_parameters`);
  const dimensions = rotatedDimensions(config, parameters, options);
  const names = [...kinds, ...Object.keys(options.aliases ?? {})];
  const named = parameters.oneOf("rope_type", names, parameters.oneOf("type", names, "default"));
  const kind = options.aliases?.[named] ?? (named as Kind);
  const outer =
    options.originalContext === undefined
      ? null
      : config.positiveInteger("original_max_position_embeddings", options.originalContext);
  const base = Array.from({ length: dimensions / 2 }, (_, i) => theta ** ((-2 * i) / dimensions));
  const scaled = scalings[kind](base, parameters, {
    theta,
    contextLength: options.contextLength,
    originalContext: () => {
      const inner = parameters.positiveInteger("original_max_position_embeddings", options.contextLength);
      return outer ?? inner;
    },
  });
  for (const key of options.alsoRead ?? []) parameters.get(key);
  parameters.finish();
  return { pairs: options.pairs ?? "halves", long: null, factor: 1, ...scaled };
}

function rotatedDimensions(
  config: ConfigReader,
  parameters: ConfigReader,
  { headDim, partial }: RopeOptions,
): number {
  if (partial === undefined) {
    for (const reader of [config, parameters]) reader.only("partial_rotary_factor", 1);
    if (headDim % 2 !== 0) throw config.valueError("head_dim", "an even number");
    return headDim;
  }
  const old = config.positiveNumber(partial.key, partial.fallback);
  const part = parameters.positiveNumber("partial_rotary_factor", old);
  const dimensions = Math.trunc(headDim * part);
  if (part > 1 || dimensions < 2 || dimensions % 2 !== 0) {
    const source = parameters.get("partial_rotary_factor") === null ? [config, partial.key] : null;
    const [reader, key] = (source ?? [parameters, "partial_rotary_factor"]) as [ConfigReader, string];
    throw reader.valueError(
      key,
      `a fraction of the ${headDim} head dimensions that gives an even number of them`,
    );
  }
  return dimensions;
}

const kinds = ["default", "linear", "dynamic", "yarn", "longrope", "llama3"] as const;

interface Context {
  readonly theta: number;
  readonly contextLength: number;
  /** Returns the context length of training before the context was extended, in tokens. */
  originalContext(): number;
}

type Scaling = (
  base: readonly number[],
  parameters: ConfigReader,
  context: Context,
) => Pick<RotaryDescription, "frequencies"> & Partial<RotaryDescription>;

const scalings: Readonly<Record<Kind, Scaling>> = {
  default: (frequencies) => ({ frequencies }),

  linear(base, parameters) {
    const factor = parameters.positiveNumber("factor");
    return { frequencies: base.map((frequency) => frequency / factor) };
  },

  // Affects only sequences longer than the context, which this package rejects.
  dynamic(frequencies, parameters) {
    parameters.positiveNumber("factor");
    return { frequencies };
  },

  /** Stretches long wavelengths by `factor`, keeps short ones and blends those between (Llama 3.1). */
  llama3(base, parameters, { originalContext }) {
    const factor = parameters.positiveNumber("factor");
    const low = parameters.positiveNumber("low_freq_factor");
    const high = parameters.positiveNumber("high_freq_factor");
    const oldContext = originalContext();
    if (high <= low)
      throw parameters.valueError("high_freq_factor", `a number above low_freq_factor, ${low}`);
    const frequencies = base.map((frequency) => {
      const wavelength = (2 * Math.PI) / frequency;
      if (wavelength < oldContext / high) return frequency;
      if (wavelength > oldContext / low) return frequency / factor;
      const smooth = (oldContext / wavelength - low) / (high - low);
      return ((1 - smooth) * frequency) / factor + smooth * frequency;
    });
    return { frequencies };
  },

  /** Divides each frequency by its own factor; sequences longer than the original context use a second set (LongRoPE). */
  longrope(base, parameters, { contextLength, originalContext }) {
    const beyond = originalContext();
    const divided = (key: string) => {
      const isDivisor = (entry: unknown): entry is number => typeof entry === "number" && entry > 0;
      const divisors = parameters.list(key, base.length, isDivisor, "a number above 0");
      if (divisors === null) throw parameters.valueError(key, `${base.length} numbers`);
      return base.map((frequency, i) => frequency / divisors[i]!);
    };
    const stretch = parameters.positiveNumber("factor", contextLength / beyond);
    const natural = stretch <= 1 ? 1 : Math.sqrt(1 + Math.log(stretch) / Math.log(beyond));
    return {
      frequencies: divided("short_factor"),
      long: { beyond, frequencies: divided("long_factor") },
      factor: parameters.positiveNumber("attention_factor", natural),
    };
  },

  /**
   * Phases the stretch in between two numbers of rotations over the original context (YaRN, Peng et al. 2023). Interpolates
   * linearly over the index of the pair, as the authors' code does; the paper's γ interpolates over the rotations.
   */
  yarn(base, parameters, { theta, contextLength, originalContext }) {
    const oldContext = originalContext();
    const stretch = parameters.positiveNumber("factor", contextLength / oldContext);
    const growth = (by: number) => (stretch <= 1 ? 1 : 0.1 * by * Math.log(stretch) + 1);
    const numerator = parameters.positiveNumberOrNull("mscale", null);
    const denominator = parameters.positiveNumberOrNull("mscale_all_dim", null);
    const natural =
      numerator !== null && denominator !== null ? growth(numerator) / growth(denominator) : growth(1);
    const dimensions = 2 * base.length;
    const pairWithRotations = (times: number) =>
      (dimensions * Math.log(oldContext / (times * 2 * Math.PI))) / (2 * Math.log(theta));
    const isTruncated = parameters.boolean("truncate", true);
    const [first, last] = [
      pairWithRotations(parameters.positiveNumber("beta_fast", 32)),
      pairWithRotations(parameters.positiveNumber("beta_slow", 1)),
    ];
    const start = Math.max(isTruncated ? Math.floor(first) : first, 0);
    const end = Math.min(isTruncated ? Math.ceil(last) : last, dimensions - 1);
    const width = start === end ? 0.001 : end - start;
    const frequencies = base.map((frequency, i) => {
      const stretched = Math.min(1, Math.max(0, (i - start) / width));
      return (frequency / stretch) * stretched + frequency * (1 - stretched);
    });
    return { frequencies, factor: parameters.positiveNumber("attention_factor", natural) };
  },
};
