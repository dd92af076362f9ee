import type { Json } from "@periodic-eval/core";
import type { BadRow } from "../data/bad-row.ts";
import type { StepWork } from "../loop/types.ts";

/** Rows as the steps of a method of training take them. */
export interface TrainingRows {
  /** Tokens of each row: batches hold rows of like length. */
  readonly lengths: readonly number[];
  /**
   * What one optimizer step learns from.
   *
   * @param microBatches row numbers of each forward and backward pass
   * @param step completed ones before it; what is random depends on it
   */
  work(microBatches: readonly (readonly number[])[], step: number): StepWork;
  readonly heldOut: HeldOut;
}

/** All rows of a source. */
export interface TrainingData extends TrainingRows {
  /**
   * Where a row holds several of the source's: how many of those there are, and some of them by themselves. What is held out
   * is drawn from those.
   */
  readonly packed?: { readonly count: number; only(rows: readonly number[]): TrainingRows };
  /** Rows that could not be trained on as they are, left out or cut. */
  readonly badRows: readonly BadRow[];
  /** A sentence that says where all of them are listed; null where there are none. */
  readonly badRowsListed: string | null;
  /** Of the source, the bad ones included. */
  readonly rowsRead: number;
  /** Of everything that the steps learn from, in order: a resume with another one is refused. */
  readonly hash: string;
  /** What else must be the same for a resume to be exact, by name. */
  readonly exact?: Readonly<Record<string, Json>>;
  /** Writes what was dear to read, for a resume. Called once nothing is refused any more: what is refused changes nothing. */
  keep?(): Promise<void>;
}

/** What a method finds on rows that it does not train on. */
export interface HeldOut {
  /** Of everything that it measures by beside the weights. */
  readonly hash: string;
  /**
   * The method's `heldOutMetrics`, over all of these rows. Runs the model forward in evaluation mode, draws nothing at
   * random, and leaves model and memory as they were: training goes on to the same bits.
   *
   * @param batches row numbers of each forward pass
   */
  measure(batches: readonly (readonly number[])[]): Promise<Readonly<Record<string, number>>>;
}
