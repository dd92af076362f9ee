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
  const validationOf = (rows: TrainingRows | null) => rows && validationOn(rows, batchSize);
  if (validationShare === null) return { training: data, validation: validationOf(given) };
  const part = data.packed?.only ?? ((rows: readonly number[]) => only(data, rows));
  const share = holdOut(data.packed?.count ?? data.lengths.length, validationShare, stream);
  return { training: part(share.training), validation: validationOf(part(share.validation)) };
}

function only({ lengths, work, heldOut }: TrainingRows, rows: readonly number[]): TrainingRows {
  const numbersOf = (batches: readonly (readonly number[])[]) =>
    batches.map((batch) => batch.map((number) => rows[number]!));
  return {
    lengths: rows.map((row) => lengths[row]!),
    work: (microBatches, step) => work(numbersOf(microBatches), step),
    heldOut: { hash: heldOut.hash, measure: (batches) => heldOut.measure(numbersOf(batches)) },
  };
}
