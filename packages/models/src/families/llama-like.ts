import type { DecoderDescription, LayerDescription } from "../decoder/description.ts";
import { activation, type ActivationName } from "./config/activation-name.ts";
import { unusedDropout } from "./config/unused-keys.ts";
import type { LayerNames } from "../decoder/weights.ts";
import type { Family } from "./family.ts";
import type { ConfigReader } from "./config/config-reader.ts";
import { finishConfig } from "./config/unused-keys.ts";
import { modelSizes, paddingRow, type ModelSizes, type SizeDefaults } from "./config/sizes.ts";
import { llamaNames } from "./config/weight-names.ts";

/** The defaults of a configuration class. */
type LlamaLikeDefaults = SizeDefaults & {
  readonly epsilon: number;
  /** Default: `rms_norm_eps`. */
  readonly epsilonKey?: string;
  readonly mlpSize: number;
  /** Default: false. */
  readonly tied?: boolean;
  /** `pad_token_id`. Default: null. */
  readonly padding?: number | null;
  readonly activation?: {
    readonly key: "hidden_act" | "hidden_activation";
    readonly fallback: ActivationName;
  };
  /** Keys of dropout rates. Default: only `attention_dropout`. */
  readonly dropouts?: readonly string[];
};

export type LlamaLike = ReturnType<typeof llamaLike>;

/** A descendant of Llama, as its differences from Llama. */
interface LlamaFamily {
  readonly modelType: string;
  readonly defaults: LlamaLikeDefaults;
  /** Describes the decoder from the part that Llama shares. Reads all other keys that it supports. */
  describe(config: ConfigReader, base: LlamaLike, sizes: ModelSizes): DecoderDescription;
  /** Returns the names of a layer that differ from Llama's, by the layer's prefix. */
  names?(layer: string): Partial<LayerNames>;
  /** The name of the norm before the head. Default: Llama's. */
  readonly finalNorm?: string;
}

export const llamaFamily = ({ modelType, defaults, ...family }: LlamaFamily): Family => ({
  modelType,
  describe(config) {
    const sizes = modelSizes(config, defaults);
    const description = family.describe(config, llamaLike(config, sizes, defaults), sizes);
    finishConfig(config, sizes.layers);
    return description;
  },
  names: { ...llamaNames(family.names), ...(family.finalNorm && { finalNorm: family.finalNorm }) },
  prefix: "model.",
});

/**
 * Describes what the descendants of Llama share, without the layers: RMSNorm before attention and MLP, no biases, a gated
 * MLP. Reads the epsilon of norms, dropout rates, `intermediate_size`, `tie_word_embeddings`, `pad_token_id` and the activation.
 */
function llamaLike(
  config: ConfigReader,
  { vocabSize, contextLength, hiddenSize, heads, keyValueHeads, headDim }: ModelSizes,
  { tied = false, padding = null, activation: named, ...defaults }: LlamaLikeDefaults,
) {
  unusedDropout(config, defaults.dropouts ?? ["attention_dropout"]);
  const epsilon = config.positiveNumber(defaults.epsilonKey ?? "rms_norm_eps", defaults.epsilon);
  return {
    vocabSize,
    contextLength,
    hiddenSize,
    embedding: { scale: 1, paddingRow: paddingRow(config, vocabSize, padding), learnedPositions: null },
    norm: { kind: "rms", epsilon, offset: 0 },
    block: { norms: { before: true, after: false }, residual: "sequential", residualScale: 1 },
    attention: {
      heads,
      keyValueHeads,
      headDim,
      projection: "separate",
      bias: { queryKeyValue: false, output: false },
      queryKeyNorm: null,
      softCap: null,
    },
    mlp: {
      kind: "gated",
      activation: activation(config, named?.key ?? "hidden_act", named?.fallback ?? "silu"),
      size: config.positiveInteger("intermediate_size", defaults.mlpSize),
      bias: false,
    },
    head: { tied: config.boolean("tie_word_embeddings", tied), bias: false, scale: 1, softCap: null },
  } as const satisfies Omit<DecoderDescription, "layers">;
}

/** Returns layers that differ at most in their windows; default: none has one. */
export const alike = (
  { layers, headDim }: Pick<ModelSizes, "layers" | "headDim">,
  rotary: LayerDescription["rotary"],
  windows: number | null | readonly (number | null)[] = null,
): readonly LayerDescription[] =>
  Array.from({ length: layers }, (_, index) => {
    const window = typeof windows === "object" ? (windows?.[index] ?? null) : windows;
    return { window, rotary, scoreScale: headDim ** -0.5 };
  });
