import { holdOut } from "../data/hold-out.ts";
import { validationOn, type Validation } from "../loop/validation.ts";
import type { TrainingConfig } from "./training-config.ts";
import type { TrainingData } from "./training-data.ts";

/** Which rows are trained on, by number, and what is validated on; null for nothing. */
export interface RowParts {
  readonly training: readonly number[];
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
  const count = data.lengths.length;
  const share = validationShare === null ? null : holdOut(count, validationShare, stream);
  const training = share?.training ?? allOf(count);
  const source = share === null ? given : data;
  if (source === null) return { training, validation: null };
  const { heldOut, lengths } = source;
  const rows = share?.validation ?? allOf(lengths.length);
  return { training, validation: validationOn({ heldOut, rows, lengths, batchSize }) };
}

const allOf = (count: number): readonly number[] => Array.from({ length: count }, (_, row) => row);
