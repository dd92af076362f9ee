/** Turns the words of a pre-tokenizer into ids. */
export interface Model {
  readonly type: ModelType;
  readonly ids: ReadonlyMap<string, number>;
  readonly tokens: readonly (string | undefined)[];
  /** The number of tokens, from which the ids of added tokens go on. */
  readonly size: number;
  /** Throws an error for a word with unknown parts if the model has no token for them. */
  readonly encode: (word: string) => number[];
}

export const modelTypes = ["BPE", "Unigram", "WordLevel", "WordPiece"] as const;
export type ModelType = (typeof modelTypes)[number];

/** The vocabulary of a model that is not a unigram model. */
export interface Vocabulary {
  readonly ids: ReadonlyMap<string, number>;
  readonly tokens: readonly (string | undefined)[];
  readonly size: number;
}
