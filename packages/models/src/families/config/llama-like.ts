import type { DecoderDescription, LayerDescription } from "../../decoder/description.ts";
import { activation } from "./activation-name.ts";
import type { ConfigReader } from "./config-reader.ts";
import { paddingRow, type ModelSizes } from "./sizes.ts";

export interface LlamaLikeDefaults {
  readonly epsilon: number;
  readonly mlpSize: number;
  readonly tied: boolean;
  /** `pad_token_id`. */
  readonly padding: number | null;
  readonly activation?: {
    readonly key: "hidden_act" | "hidden_activation";
    readonly fallback: "silu" | "gelu_pytorch_tanh";
  };
}

/**
 * Describes what the descendants of Llama share, without the layers: RMSNorm before attention and MLP, no biases, a gated
 * MLP. Reads `rms_norm_eps`, `intermediate_size`, `tie_word_embeddings`, `pad_token_id` and the activation.
 */
export function llamaLike(
  config: ConfigReader,
  { vocabSize, contextLength, hiddenSize, heads, keyValueHeads, headDim }: ModelSizes,
  { epsilon, mlpSize, tied, padding, activation: named }: LlamaLikeDefaults,
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

/** Returns `count` identical layers. */
export function alike(count: number, layer: LayerDescription): readonly LayerDescription[] {
  return Array.from({ length: count }, () => layer);
}
