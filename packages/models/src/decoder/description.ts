/**
 * A decoder in plain data: what a family's configuration comes down to. Every variant in which families differ is a
 * field here, and the forward pass knows no family. A further family adds members to these unions.
 */
export interface DecoderDescription {
  readonly vocabSize: number;
  /** Longest sequence, in tokens. */
  readonly contextLength: number;
  /** Width of the residual stream. */
  readonly hiddenSize: number;
  readonly embedding: EmbeddingDescription;
  /** Of all norms on the residual stream and of those of queries and keys. */
  readonly norm: NormDescription;
  readonly block: BlockDescription;
  readonly attention: AttentionDescription;
  readonly mlp: MlpDescription;
  /** What differs from layer to layer, one for each layer. */
  readonly layers: readonly LayerDescription[];
  readonly head: HeadDescription;
}

export interface EmbeddingDescription {
  /** What a token's embedding is multiplied by. */
  readonly scale: number;
  /**
   * The row of padding: looking it up gives it no gradient, as torch's `padding_idx`. A tied head still does. Null where
   * there is none.
   */
  readonly paddingRow: number | null;
  /** Whether each position has an embedding of its own, which is added. */
  readonly learnedPositions: boolean;
}

export type NormDescription =
  /** x / √(mean(x²) + epsilon) · (weight + offset); an offset of 1 is for weights that are stored around 0. */
  | { readonly kind: "rms"; readonly epsilon: number; readonly offset: 0 | 1 }
  /** (x − mean) / √(variance + epsilon) · weight + bias. */
  | { readonly kind: "layer"; readonly epsilon: number };

/** How attention and MLP stand in a layer. */
export interface BlockDescription {
  /** Norms of what enters attention and MLP (`before`), of what they add to the residual stream (`after`), or of both. */
  readonly norms: { readonly before: boolean; readonly after: boolean };
  /** `"parallel"`: the MLP reads what attention reads; else what attention has added to. */
  readonly residual: "sequential" | "parallel";
}

export interface AttentionDescription {
  readonly heads: number;
  /** Divides `heads`; each serves `heads / keyValueHeads` query heads that lie side by side. */
  readonly keyValueHeads: number;
  readonly headDim: number;
  /**
   * Where queries, keys and values come from: three linear maps; one map whose output is all queries, all keys, all
   * values; or one whose output is query, key and value of head 0, then those of head 1, and so on.
   */
  readonly projection: "separate" | "fused" | "fusedByHead";
  /** Which projections add a bias. */
  readonly bias: { readonly queryKeyValue: boolean; readonly output: boolean };
  /** Norms of queries and keys before rotation: of each head's, with one weight for all; or over all heads at once. */
  readonly queryKeyNorm: "head" | "projection" | null;
  /** Scores s become cap · tanh(s / cap) before the mask. Null: as they are. */
  readonly softCap: number | null;
}

export interface LayerDescription {
  /** How many tokens a token sees, itself and those just before it. Null: all before it. */
  readonly window: number | null;
  /** The same object for layers that rotate alike. Null: none. */
  readonly rotary: RotaryDescription | null;
  /** What scores are multiplied by. */
  readonly scoreScale: number;
}

/** Dimension i of a head is paired with i + n, n = `frequencies.length`; dimensions from 2n on do not rotate. */
export interface RotaryDescription {
  /** Radians per position of each pair. */
  readonly frequencies: readonly number[];
  /** What all positions of a sequence rotate by in their place once it has more than `beyond` tokens. */
  readonly long: { readonly beyond: number; readonly frequencies: readonly number[] } | null;
  /** What cosines and sines are multiplied by. */
  readonly factor: number;
}

export type Activation =
  | "silu"
  /** x · Φ(x). */
  | "gelu"
  /** The approximation of gelu by tanh. */
  | "geluTanh"
  | "relu";

export interface MlpDescription {
  /**
   * `"gated"`: down(activation(gate(x)) · up(x)); `"gatedFused"`: the same with one map whose output is gate, then up;
   * `"plain"`: down(activation(up(x))).
   */
  readonly kind: "gated" | "gatedFused" | "plain";
  readonly activation: Activation;
  readonly size: number;
  readonly bias: boolean;
}

export interface HeadDescription {
  /** The head is the embedding, transposed. */
  readonly tied: boolean;
  /** Logits x become cap · tanh(x / cap). Null: as they are. */
  readonly softCap: number | null;
}
