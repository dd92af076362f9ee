import { aboutOption } from "@periodic-eval/contracts/options";
import { join } from "@periodic-eval/store/platform";
import type { Json, Tokenizer } from "@periodic-eval/core";
import { badRowsFile, type RowsOf } from "./bad-row.ts";
import {
  loadDataset,
  type Dataset,
  type DatasetOptions,
  loadPreferences,
  type PreferenceDataset,
  type PreferenceOptions,
} from "./dataset.ts";
import type { SFTRow } from "./forms.ts";
import type { PreferenceSource } from "./preference-rows.ts";
import { readAhead, readKept } from "./read-ahead.ts";
import type { RowSource } from "./read-rows.ts";

/** How the rows of a phase are read. */
export interface Reading {
  readonly phase: string;
  /** The run's folder, where bad rows are listed. Null lists them nowhere. */
  readonly runDir: string | null;
  /**
   * True for the checks before the first phase, which keep the rows of files. The trainer takes them when the phase begins, if
   * the files are unchanged.
   */
  readonly isAhead: boolean;
}

/** A source of rows for a phase. */
export interface PhaseSource<S> extends Reading {
  readonly source: S;
  readonly of: RowsOf;
  readonly tokenizer: Tokenizer;
}

type RequiredOptions<O extends DatasetOptions | PreferenceOptions> = Required<
  Omit<O, "keepBadRows" | "maxLineBytes" | "of">
>;

export const readDataset = (
  from: PhaseSource<RowSource<SFTRow>>,
  options: RequiredOptions<DatasetOptions>,
): Promise<Dataset> => readPhaseRows(from, options, loadDataset);

/** Reads the preference pairs of a DPO phase. */
export const readPreferences = (
  from: PhaseSource<PreferenceSource>,
  options: RequiredOptions<PreferenceOptions>,
): Promise<PreferenceDataset> => readPhaseRows(from, options, loadPreferences);

async function readPhaseRows<S, O extends Readonly<Record<string, Json>>, T>(
  { source, of, phase, runDir, tokenizer, isAhead }: PhaseSource<S>,
  options: O,
  load: (
    source: S,
    tokenizer: Tokenizer,
    options: O & Pick<DatasetOptions, "keepBadRows" | "of">,
  ) => Promise<T>,
): Promise<T> {
  const read = isAhead ? readAhead : readKept;
  const listed = runDir === null ? null : join(runDir, phase, of);
  const keepBadRows = runDir === null ? {} : { keepBadRows: badRowsFile(runDir, phase, of) };
  try {
    return await read(tokenizer, { source, of, settings: { ...options, listed } }, () =>
      load(source, tokenizer, { ...options, ...keepBadRows, of }),
    );
  } catch (error) {
    throw aboutOption(error, { where: of, path: [of] });
  }
}
