import type { Activation } from "../ops/activation.ts";

/**
 * A decoder as plain data. Every difference between families is a field here, and the forward pass knows only these
 * fields. A new family adds members to these unions where it needs them.
 */
export interface DecoderDescription {
  readonly vocabSize: number;
  /** Longest sequence, in tokens. */
  readonly contextLength: number;
  /** Width of the residual stream. */
  readonly hiddenSize: number;
  readonly embedding: EmbeddingDescription;
  /** The kind of every norm: on the residual stream, and of queries and keys. */
  readonly norm: NormDescription;
  readonly block: BlockDescription;
  readonly attention: AttentionDescription;
  readonly mlp: MlpDescription;
  /** The properties that may differ between layers, one entry per layer. */
  readonly layers: readonly LayerDescription[];
  readonly head: HeadDescription;
}

export interface EmbeddingDescription {
  /** Multiplies the embedding of each token. */
  readonly scale: number;
  /**
   * The row of the padding token: a lookup gives it no gradient, like `padding_idx` in torch, but a tied head does. Null
   * if there is none.
   */
  readonly paddingRow: number | null;
  /**
   * A learned embedding of each position is added: the row of position i in its table is i + offset. Null: no such
   * embedding.
   */
  readonly learnedPositions: { readonly offset: number } | null;
}

export type NormDescription =
  /** x / √(mean(x²) + epsilon) · (weight + offset). The offset is 1 for families that store weight − 1. */
  | { readonly kind: "rms"; readonly epsilon: number; readonly offset: 0 | 1 }
  /** (x − mean) / √(variance + epsilon) · (weight + offset) + bias, the bias only if `hasBias`. */
  | { readonly kind: "layer"; readonly epsilon: number; readonly offset: 0 | 1; readonly hasBias: boolean };

/** How attention and MLP are arranged in a layer. */
export interface BlockDescription {
  /** Whether the inputs of attention and MLP (`before`) and their outputs (`after`) are normalized. */
  readonly norms: { readonly before: boolean; readonly after: boolean };
  /**
   * `"sequential"`: the MLP reads the residual stream after attention. `"parallel"`: it reads the input of attention.
   * `"parallelOneNorm"`: the same, and one norm before both.
   */
  readonly residual: "sequential" | "parallel" | "parallelOneNorm";
  /** Multiplies the outputs of attention and MLP before they are added to the residual stream. */
  readonly residualScale: number;
}

export interface AttentionDescription {
  readonly heads: number;
  /** A divisor of `heads`; each serves `heads / keyValueHeads` adjacent query heads. */
  readonly keyValueHeads: number;
  readonly headDim: number;
  /**
   * `"separate"`: three linear maps. `"fused"`: one map with the output [all queries, all keys, all values].
   * `"fusedByHead"`: one map with the output [query, key and value of head 0, those of head 1, …].
   */
  readonly projection: "separate" | "fused" | "fusedByHead";
  /** Whether each projection adds a bias. */
  readonly bias: { readonly queryKeyValue: boolean; readonly output: boolean };
  /**
   * Norms of queries and keys before rotation. `"head"`: over each head, with one weight for all heads. `"projection"`: over
   * all heads together. Null: none.
   */
  readonly queryKeyNorm: "head" | "projection" | null;
  /** Scores s become cap · tanh(s / cap) before the mask. Null: no cap. */
  readonly softCap: number | null;
}

export interface LayerDescription {
  /** The number of tokens that a token attends to, itself included. Null: all earlier tokens. */
  readonly window: number | null;
  /** Layers with equal rotations share one object. Null: no rotation. */
  readonly rotary: RotaryDescription | null;
  /** Multiplies the attention scores. */
  readonly scoreScale: number;
}

/** A rotation of head dimensions in n pairs, n = `frequencies.length`; dimensions from 2n on stay fixed. */
export interface RotaryDescription {
  /** `"halves"`: dimension i is paired with i + n. `"adjacent"`: 2i is paired with 2i + 1. */
  readonly pairs: "halves" | "adjacent";
  /** Radians per position, one for each pair. */
  readonly frequencies: readonly number[];
  /** Replaces `frequencies` for all positions of sequences with more than `beyond` tokens. */
  readonly long: { readonly beyond: number; readonly frequencies: readonly number[] } | null;
  /** Multiplies the cosines and sines. */
  readonly factor: number;
}

export interface MlpDescription {
  /**
   * `"gated"`: down(activation(gate(x)) · up(x)). `"gatedFused"`: the same, with one map whose output is [gate, up].
   * `"plain"`: down(activation(up(x))).
   */
  readonly kind: "gated" | "gatedFused" | "plain";
  readonly activation: Activation;
  readonly size: number;
  readonly bias: boolean;
}

export interface HeadDescription {
  /** Whether the head is the transposed embedding. */
  readonly tied: boolean;
  /** Whether a head that is not tied adds a bias. */
  readonly bias: boolean;
  /** Multiplies the logits, before the cap. */
  readonly scale: number;
  /** Logits x become cap · tanh(x / cap). Null: no cap. */
  readonly softCap: number | null;
}
