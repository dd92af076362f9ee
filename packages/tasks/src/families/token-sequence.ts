/** The tokens of one sequence that was scored or written. */
export interface TokenSequence {
  readonly ids: readonly number[];
  /** One an id: true over the tokens that were generated; of families that generate nothing, that are scored. */
  readonly actionMask: readonly boolean[];
}

/** Told the sequences of a row, in order. */
export type Tell = (row: string, sequence: TokenSequence) => void;

/** What was written, or is scored, after a context. */
export function sequenceOf(context: readonly number[], action: readonly number[]): TokenSequence {
  const ids = [...context, ...action];
  return { ids, actionMask: ids.map((_, at) => at >= context.length) };
}
