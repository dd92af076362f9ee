import { holdOut } from "../data/hold-out.ts";
import { validationOn, type Validation } from "../loop/validation.ts";
import type { TrainingConfig } from "./training-config.ts";
import type { TrainingData, TrainingRows } from "./training-data.ts";

/** What is trained on, and what is validated on; null for nothing. */
export interface RowParts {
  readonly training: TrainingRows;
  readonly validation: Validation | null;
}

/**
 * Rows to train on and rows to validate on: a share of the data, or data of their own.
 *
 * @param given the rows that were given to validate on; null where there are none
 * @throws PeriodicEvalError `data` where the share leaves no row to train on.
 */
export function partRows(
  { validationShare, batchSize }: TrainingConfig,
  stream: { readonly seed: string; readonly phase: string },
  data: TrainingData,
  given: TrainingData | null,
): RowParts {
  const validationOf = ({ heldOut, lengths }: TrainingRows, hash: string, rows: readonly number[]) =>
    // The constructor refuses to validate by a method that cannot.
    validationOn({ heldOut: heldOut!, hash, rows, lengths, batchSize });
  if (validationShare === null) {
    const validation = given === null ? null : validationOf(given, given.hash, allOf(given));
    return { training: data, validation };
  }
  const share = holdOut(data.packed?.count ?? data.lengths.length, validationShare, stream);
  if (data.packed !== undefined) {
    const held = data.packed.only(share.validation);
    const validation = validationOf(held, data.hash, allOf(held));
    return { training: data.packed.only(share.training), validation };
  }
  return {
    training: only(data, share.training),
    validation: validationOf(data, data.hash, share.validation),
  };
}

const allOf = ({ lengths }: TrainingRows): readonly number[] => Array.from(lengths.keys());

const only = ({ lengths, work }: TrainingRows, rows: readonly number[]): TrainingRows => ({
  lengths: rows.map((row) => lengths[row]!),
  work: (microBatches, step) => {
    const numbers = microBatches.map((batch) => batch.map((number) => rows[number]!));
    return work(numbers, step);
  },
});
