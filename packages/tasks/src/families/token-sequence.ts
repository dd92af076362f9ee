/** The tokens of one sequence that was scored or generated. */
export interface TokenSequence {
  readonly ids: readonly number[];
  /** One per id: true for generated tokens, or for scored tokens in families that do not generate. */
  readonly actionMask: readonly boolean[];
}

/** Receives the sequence of a row, one per sample that the model answered. The model has a tokenizer. */
export type OnSequence = (row: string, sequence: TokenSequence) => void;

/** Joins a context and the tokens that were generated or scored after it. */
export function sequenceOf(context: readonly number[], action: readonly number[]): TokenSequence {
  const ids = [...context, ...action];
  return { ids, actionMask: ids.map((_, at) => at >= context.length) };
}
