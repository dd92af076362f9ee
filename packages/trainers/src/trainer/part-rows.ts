import { checkWord, PeriodicEvalError } from "@periodic-eval/core";
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
 * @param name how errors call the configuration: `SFT config`
 * @param given the rows that were given to validate on; null where there are none
 * @throws PeriodicEvalError `config` for a method that cannot validate, or a `keepBest` that it does not measure.
 */
export function partRows(
  name: string,
  { validationShare, batchSize, keepBest }: TrainingConfig,
  stream: { readonly seed: string; readonly phase: string },
  data: TrainingData,
  given: TrainingData | null,
): RowParts {
  const count = data.lengths.length;
  const share = validationShare === null ? null : holdOut(count, validationShare, stream);
  const training = share?.training ?? allOf(count);
  const source = share === null ? given : data;
  if (source === null) return { training, validation: null };
  const { heldOut, hash, lengths } = source;
  if (heldOut === undefined) throw cannotValidate(name);
  const rows = share?.validation ?? allOf(lengths.length);
  const validation = validationOn({ heldOut, hash, rows, lengths, batchSize });
  if (keepBest !== null) checkWord(`${name} keepBest`, keepBest, validation.metrics);
  return { training, validation };
}

const allOf = (count: number): readonly number[] => Array.from({ length: count }, (_, row) => row);

function cannotValidate(name: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where: name,
    got: "rows to validate on",
    expected: "none: this method does not validate",
    fix: "Leave validation and validationShare out.",
  });
}
