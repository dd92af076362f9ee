import type { BadRow } from "../data/bad-row.ts";
import type { StepWork } from "../loop/types.ts";

/** Rows as a method of training holds them, ready for its steps. */
export interface TrainingData {
  /** Tokens of each row: batches hold rows of like length. */
  readonly lengths: readonly number[];
  /** Rows that could not be trained on as they are, left out or cut. */
  readonly badRows: readonly BadRow[];
  /** Of the source, the bad ones included. */
  readonly rowsRead: number;
  /** Of everything that the steps learn from, in order: a resume with another one is refused. */
  readonly hash: string;
  /**
   * What one optimizer step learns from.
   *
   * @param microBatches row numbers of each forward and backward pass
   * @param step completed ones before it; what is random depends on it
   */
  work(microBatches: readonly (readonly number[])[], step: number): StepWork;
  dispose?(): void;
}
