import type * as tf from "@tensorflow/tfjs-core";

/** A weight by name. */
export interface NamedWeight {
  readonly name: string;
  /** The live tensor. The caller must not dispose it. */
  read(): tf.Tensor;
}

/**
 * A causal language model on TensorFlow.js. B sequences, T tokens, N scored positions, V vocabulary.
 * Returned tensors belong to the caller.
 */
export interface CausalLM {
  /** As it should stand in snapshots; "in-memory" where it is left out. */
  readonly name?: string;
  readonly vocabSize: number;
  readonly contextLength: number;
  /** Set where the graph takes this length only: shorter rows are padded to it. */
  readonly fixedLength?: number;
  /** ids int32 [B, T], right-padded, positions from 0 → logits float32 [B, T, V]. */
  logits(ids: tf.Tensor2D): tf.Tensor3D;
  /** The head on scored positions only: ids [B, T], rows int32 [N] indexing the flattened B·T → logits [N, V]. */
  logitsAt?(ids: tf.Tensor2D, rows: tf.Tensor1D): tf.Tensor2D;
  /** Reading token by token, or many branches at once; without it every sequence is read whole. */
  readonly incremental?: Incremental;
  /** The same model without its adapter. */
  readonly base?: CausalLM;
  /** The adapter as it should stand in snapshots; "live" where it is left out and there is a `base`. */
  readonly adapter?: string;
  /** Leaves training mode (dropout); the returned function restores the mode there was. See `evaluationMode`. */
  enterEval?(): () => void;
  /**
   * Whether the model is in training mode, as one line per thing that has a mode; observed by guards. A line that tells
   * how often `enterEval` was entered and not left shows an evaluation that forgets to leave.
   */
  modes?(): string;
  weights?(): readonly NamedWeight[];
}

/** What packed questions, shared prefixes and generation with a cache are made of. */
export interface Incremental {
  /** Tokens of the longest sequence that is read this way as it is read whole. */
  readonly reach: number;
  /** Bytes that keys and values of one token take. */
  readonly tokenBytes: number;
  /** Reads tokens whose places are told one by one, after others that were read before. */
  extend(block: TokenBlock, options: ExtendOptions): Extended;
  /** The head: states float32 [N, H], as `extend` gives them → logits [N, V]. */
  logitsOf(states: tf.Tensor2D): tf.Tensor2D;
}

/**
 * Tokens and their places, B rows of T. A row is a tree: what sequences begin with alike is read once, and where they part,
 * each goes on in segments of its own. Segments are numbered so that those behind a token are one range, the token's own
 * first. A token sees itself and, in its row and in what was read before, every token whose position is lower and whose
 * range holds its segment.
 */
export interface TokenBlock {
  readonly batch: number;
  readonly length: number;
  /** [B·T], row-major. */
  readonly ids: Int32Array;
  /** Position of each token in the sequence that it belongs to, from 0, [B·T]. */
  readonly positions: Int32Array;
  /** [B·T]: of each token, from 0; −1 for padding, which nothing sees. */
  readonly segments: Int32Array;
  /** [B·T]: the last segment behind each token; `everySegment` where all that is read later comes behind it. */
  readonly lastSegments: Int32Array;
}

export interface ExtendOptions {
  /** Read before, in any number of pieces: each of as many rows as the block, or of one row that all of them follow. */
  readonly past?: readonly KeyValues[];
  /**
   * Keys and values, of as many rows as the block and behind those of `past`, to which the block's are added in place;
   * `keyValues` is then null.
   */
  readonly into?: KeyValues | null;
  /** Indices into the flattened B·T: states are given of these alone. */
  readonly rows: readonly number[];
  /** Whether the block's keys and values are wanted by themselves; default false. */
  readonly keep?: boolean;
}

export interface Extended {
  /** What `logitsOf` takes: float32 [N, H], N = `rows.length`, H of the model's own; the caller's. */
  readonly states: tf.Tensor2D;
  /** The block's; the caller's to dispose. Null where they were not wanted. */
  readonly keyValues: KeyValues | null;
}

/** What attention keeps of tokens that were read. */
export interface KeyValues {
  readonly batch: number;
  /** Tokens per row, padding included. */
  readonly length: number;
  /** These rows, in this order, of this. The caller disposes both. */
  select(rows: readonly number[]): KeyValues;
  /** This and, behind it, another of as many rows. The caller disposes all three. */
  append(later: KeyValues): KeyValues;
  /** The rows of this and, below them, those of others, padded to the longest. The caller disposes all. */
  stack(below: readonly KeyValues[]): KeyValues;
  dispose(): void;
}

/** A stream of numbers in [0, 1) for each name. */
export type NamedRandom = (name: string) => () => number;

/** What a trainer needs beyond measuring. */
export interface TrainableLM extends CausalLM {
  /** Variables in a fixed order, named as in the checkpoint. */
  trainables(): readonly tf.Variable[];
  /**
   * Logits at the positions that a loss needs, differentiable in the trainables: ids int32 [B, T], right-padded; rows
   * int32 [N] indexing the flattened B·T → [N, V]. `random` feeds dropout: one named stream per place that draws.
   *
   * `documentStarts` [B·T], where rows hold several documents: of each token, the place in its row at which its document
   * begins. A token sees its own document alone, and positions are counted from there, so that each logit is that of the
   * document in a row of its own. Only given to a model that `takesDocuments`.
   */
  trainingLogits(
    ids: tf.Tensor2D,
    rows: tf.Tensor1D,
    random: NamedRandom,
    documentStarts?: Int32Array,
  ): tf.Tensor2D;
  /** Whether `trainingLogits`, and `trainingLosses` where it is there, take `documentStarts`; a trainer packs no rows for a model that does not say so. */
  readonly takesDocuments?: boolean;
  /**
   * The negative log-likelihood of `targets` int32 [N] by these logits, in nats, [N]: for a model that need not hold all
   * logits at once. Differentiable in the trainables, each loss by itself: a trainer may weigh them, or sum them by row.
   */
  trainingLosses?(
    ids: tf.Tensor2D,
    rows: tf.Tensor1D,
    targets: tf.Tensor1D,
    random: NamedRandom,
    documentStarts?: Int32Array,
  ): tf.Tensor1D;
  /**
   * From here on the passes that train keep of each layer only what it reads, and run it again in the backward pass:
   * the same losses and gradients of less memory, for more time. `random` is then asked for each place twice, and must
   * begin its stream anew. The returned function restores what there was.
   */
  enterActivationCheckpointing?(): () => void;
  /** Hugging Face form: `config.json` and safetensors, with the tokenizer's files where they are known. */
  save(folder: string): Promise<void>;
  dispose(): void;
}
