import type { DecoderDescription, LayerDescription } from "../decoder/description.ts";
import { activation } from "./config/activation-name.ts";
import type { LayerNames } from "../decoder/weights.ts";
import type { Family } from "./family.ts";
import { harmlessKeys, type ConfigReader } from "./config/config-reader.ts";
import { modelSizes, paddingRow, type ModelSizes, type SizeDefaults } from "./config/sizes.ts";
import { llamaNames } from "./config/weight-names.ts";

/** The defaults of a configuration class. */
interface LlamaLikeDefaults extends SizeDefaults {
  readonly epsilon: number;
  readonly mlpSize: number;
  /** Default: false. */
  readonly tied?: boolean;
  /** `pad_token_id`. Default: null. */
  readonly padding?: number | null;
  readonly activation?: {
    readonly key: "hidden_act" | "hidden_activation";
    readonly fallback: "silu" | "gelu_pytorch_tanh";
  };
}

type LlamaLike = ReturnType<typeof llamaLike>;

/** A descendant of Llama, as its differences from Llama. */
interface LlamaFamily {
  readonly modelType: string;
  readonly defaults: LlamaLikeDefaults;
  /** Describes the decoder from the part that Llama shares. Reads all other keys that it supports. */
  describe(config: ConfigReader, base: LlamaLike, sizes: ModelSizes): DecoderDescription;
  /** Returns the names of a layer that differ from Llama's, by the layer's prefix. */
  names?(layer: string): Partial<LayerNames>;
  /** Default: none. */
  readonly buffers?: Family["buffers"];
}

export const llamaFamily = ({ modelType, buffers = [], defaults, describe, names }: LlamaFamily): Family => ({
  modelType,
  describe(config) {
    const sizes = modelSizes(config, defaults);
    const description = describe(config, llamaLike(config, sizes, defaults), sizes);
    config.finish(harmlessKeys);
    return description;
  },
  names: llamaNames(names),
  prefix: "model.",
  buffers,
});

/**
 * Describes what the descendants of Llama share, without the layers: RMSNorm before attention and MLP, no biases, a gated
 * MLP. Reads `rms_norm_eps`, `intermediate_size`, `tie_word_embeddings`, `pad_token_id` and the activation.
 */
function llamaLike(
  config: ConfigReader,
  { vocabSize, contextLength, hiddenSize, heads, keyValueHeads, headDim }: ModelSizes,
  { epsilon, mlpSize, tied = false, padding = null, activation: named }: LlamaLikeDefaults,
) {
  // Ignoring this key would silently change training.
  config.only("attention_dropout", 0);
  return {
    vocabSize,
    contextLength,
    hiddenSize,
    embedding: { scale: 1, paddingRow: paddingRow(config, vocabSize, padding), learnedPositions: false },
    norm: { kind: "rms", epsilon: config.positiveNumber("rms_norm_eps", epsilon), offset: 0 },
    block: { norms: { before: true, after: false }, residual: "sequential" },
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
      size: config.size("intermediate_size", mlpSize),
      bias: false,
    },
    head: { tied: config.boolean("tie_word_embeddings", tied), softCap: null },
  } as const satisfies Omit<DecoderDescription, "layers">;
}

/** Returns identical layers, by default without a window. */
export const alike = (
  { layers, headDim }: Pick<ModelSizes, "layers" | "headDim">,
  rotary: LayerDescription["rotary"],
  window: number | null = null,
): readonly LayerDescription[] =>
  Array.from({ length: layers }, () => ({ window, rotary, scoreScale: headDim ** -0.5 }));
