import type { TrainingRows } from "./training-data.ts";

/** The validation of a phase. */
export interface Validation {
  /** Hash of the rows: a best value on other rows is not comparable. */
  readonly hash: string;
  /** Returns metrics under their logged names: `eval_loss`. */
  measure(): Promise<Readonly<Record<string, number>>>;
}

/** The best value of the validation metric so far. */
export interface Best {
  readonly metric: string;
  readonly value: number;
  /** Completed optimizer steps. */
  readonly step: number;
  /** Hash of the rows. */
  readonly rows: string;
}

/** Validates on rows in order of decreasing length, so that the rows of a batch have similar lengths. */
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

/** Returns the name under which a validation metric is logged: `eval_loss` for `loss`. */
export const evalName = (metric: string): string => `eval_${metric}`;

const lowerIsBetter = /(loss|perplexity|rejected)$/;

/** Whether `candidate` beats `best`. A tie, NaN and Inf do not; a best of another metric or other rows always loses. */
export function isBetter(candidate: Best, best: Best | null): boolean {
  if (!Number.isFinite(candidate.value)) return false;
  if (best === null || best.metric !== candidate.metric || best.rows !== candidate.rows) return true;
  return lowerIsBetter.test(candidate.metric) ? candidate.value < best.value : candidate.value > best.value;
}
