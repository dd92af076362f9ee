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
  readonly layers: number;
  readonly norm: NormDescription;
  readonly attention: AttentionDescription;
  readonly rotary: RotaryDescription;
  readonly mlp: MlpDescription;
  /** `"tied"`: the head is the embedding, transposed. */
  readonly head: "tied" | "own";
}

/** RMSNorm before attention, before the MLP and before the head. */
export interface NormDescription {
  readonly kind: "rms";
  readonly epsilon: number;
}

export interface AttentionDescription {
  readonly heads: number;
  /** Divides `heads`; each serves `heads / keyValueHeads` query heads that lie side by side. */
  readonly keyValueHeads: number;
  readonly headDim: number;
  /** What scores are multiplied by before the softmax. */
  readonly scale: number;
  /** Which projections add a bias. */
  readonly bias: { readonly queryKeyValue: boolean; readonly output: boolean };
}

export interface RotaryDescription {
  /** `"halves"`: dimension i is paired with i + headDim/2, as in Hugging Face checkpoints. */
  readonly pairing: "halves";
  /** Radians per position of each pair, [headDim / 2]. */
  readonly frequencies: readonly number[];
}

export interface MlpDescription {
  /** down(activation(gate(x)) · up(x)). */
  readonly kind: "gated";
  readonly activation: "silu";
  readonly size: number;
  readonly bias: boolean;
}
