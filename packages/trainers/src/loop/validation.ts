import type { TrainingRows } from "../trainer/training-data.ts";

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

/** The rows from long to short, so that those of a batch are of like length; metrics are named `eval_…`. */
export function validationOn({ heldOut, lengths }: TrainingRows, batchSize: number): Validation {
  const sorted = Array.from(lengths.keys()).sort((a, b) => lengths[b]! - lengths[a]! || a - b);
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

const lowerIsBetter = /(loss|perplexity|rejected)$/;

/** Whether a look beats the best so far: an equal one does not, nor NaN or Inf, nor does one on other rows compare. */
export function isBetter(look: Best, best: Best | null): boolean {
  if (!Number.isFinite(look.value)) return false;
  if (best === null || best.metric !== look.metric || best.rows !== look.rows) return true;
  return lowerIsBetter.test(look.metric) ? look.value < best.value : look.value > best.value;
}
