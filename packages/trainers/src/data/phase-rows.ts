import { join } from "node:path";
import type { Tokenizer } from "@periodic-eval/core";
import { badRowsFile, type RowsOf } from "./bad-rows-file.ts";
import { loadDataset, type Dataset, type DatasetOptions } from "./dataset.ts";
import type { SFTRow } from "./forms.ts";
import { loadPreferences, type PreferenceDataset, type PreferenceOptions } from "./preference-dataset.ts";
import type { PreferenceSource } from "./preference-rows.ts";
import type { readAhead } from "./read-ahead.ts";
import type { RowSource } from "./read-rows.ts";

/** A source of rows for a phase. Its bad rows are listed in the run's folder. */
export interface PhaseSource<S> {
  readonly source: S;
  readonly of: RowsOf;
  readonly phase: string;
  readonly runDir: string;
  readonly tokenizer: Tokenizer;
}

type RequiredOptions<O extends DatasetOptions | PreferenceOptions> = Required<
  Omit<O, "keepBadRows" | "maxLineBytes">
>;

/**
 * Reads the rows of an SFT phase. The checks before the first phase read with `readAhead`; the trainer takes the same rows with
 * `readKept` when the phase begins.
 */
export const readDataset = (
  read: typeof readAhead,
  { source, of, phase, runDir, tokenizer }: PhaseSource<RowSource<SFTRow>>,
  options: RequiredOptions<DatasetOptions>,
): Promise<Dataset> =>
  read(tokenizer, { source, settings: { ...options, listed: join(runDir, phase, of) } }, () =>
    loadDataset(source, tokenizer, { ...options, keepBadRows: badRowsFile(runDir, phase, of) }),
  );

/** Reads the preference pairs of a DPO phase, like `readDataset`. */
export const readPreferences = (
  read: typeof readAhead,
  { source, of, phase, runDir, tokenizer }: PhaseSource<PreferenceSource>,
  options: RequiredOptions<PreferenceOptions>,
): Promise<PreferenceDataset> =>
  read(tokenizer, { source, settings: { ...options, listed: join(runDir, phase, of) } }, () =>
    loadPreferences(source, tokenizer, { ...options, keepBadRows: badRowsFile(runDir, phase, of) }),
  );
