import type { HeldOut } from "../trainer/training-data.ts";

/** What a phase validates on. */
export interface Validation {
  /** Of the rows: bests on others do not compare. */
  readonly hash: string;
  /** By names as they are logged: `eval_loss`. */
  measure(): Promise<Readonly<Record<string, number>>>;
}

/** The best look at held-out rows so far. */
export interface Best {
  readonly metric: string;
  readonly value: number;
  /** Completed optimizer steps. */
  readonly step: number;
  /** Hash of the rows. */
  readonly rows: string;
}

export interface ValidationOptions {
  readonly heldOut: HeldOut;
  /** Row numbers to validate on. */
  readonly rows: readonly number[];
  /** In tokens, of every row there is. */
  readonly lengths: readonly number[];
  readonly batchSize: number;
}

/** The rows from long to short, so that those of a batch are of like length; metrics are named `eval_…`. */
export function validationOn(options: ValidationOptions): Validation {
  const { heldOut, rows, lengths, batchSize } = options;
  const sorted = [...rows].sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  const batches: number[][] = [];
  for (let at = 0; at < sorted.length; at += batchSize) batches.push(sorted.slice(at, at + batchSize));
  return {
    hash: heldOut.hash,
    async measure() {
      const found = await heldOut.measure(batches);
      return Object.fromEntries(Object.entries(found).map(([name, value]) => [evalName(name), value]));
    },
  };
}

/** As it is logged: `eval_loss`. */
export const evalName = (metric: string): string => `eval_${metric}`;

/** Whether a look beats the best so far: an equal one does not, nor NaN or Inf, nor does one on other rows compare. */
export function isBetter(look: Best, best: Best | null): boolean {
  if (!Number.isFinite(look.value)) return false;
  if (best === null || best.metric !== look.metric || best.rows !== look.rows) return true;
  return /(loss|perplexity)$/.test(look.metric) ? look.value < best.value : look.value > best.value;
}
