import type { CompletionRow } from "../prompting/completions.ts";

/** One completion. */
export interface LeakageRow extends CompletionRow {
  /**
   * Σ log p of the marker after the question's fixed answer, in nats. It belongs to the item and is kept in the row of sample
   * 0; null in the other rows, and if it was not measured.
   */
  readonly markerNats: number | null;
}

export interface GradedLeakageRow extends LeakageRow {
  /** Whether the completion has the trait; null if a custom trait failed or the thinking did not end. */
  readonly hit: boolean | null;
  readonly reason?: string;
}
