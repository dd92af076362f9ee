import { join } from "node:path";
import type { Tokenizer } from "@periodic-eval/core";
import { badRowsFile, type RowsOf } from "./bad-rows-file.ts";
import { loadDataset, type Dataset, type DatasetOptions } from "./dataset.ts";
import type { SFTRow } from "./forms.ts";
import { loadPreferences, type PreferenceDataset, type PreferenceOptions } from "./preference-dataset.ts";
import type { PreferenceSource } from "./preference-rows.ts";
import type { readAhead } from "./read-ahead.ts";
import type { RowSource } from "./read-rows.ts";

/** Rows of a phase, whose bad ones are listed in its run. */
export interface PhaseSource<S> {
  readonly source: S;
  readonly of: RowsOf;
  readonly phase: string;
  readonly runDir: string;
  readonly tokenizer: Tokenizer;
}

type ToldOptions<O extends DatasetOptions | PreferenceOptions> = Required<
  Omit<O, "keepBadRows" | "maxLineBytes">
>;

/**
 * The rows of a phase of supervised fine-tuning. What is checked before the first phase is read by `readAhead`, and taken by
 * `readKept` where the phase begins: the same options give the same rows.
 */
export const readDataset = (
  how: typeof readAhead,
  { source, of, phase, runDir, tokenizer }: PhaseSource<RowSource<SFTRow>>,
  options: ToldOptions<DatasetOptions>,
): Promise<Dataset> =>
  how(tokenizer, { source, settings: { ...options, listed: join(runDir, phase, of) } }, () =>
    loadDataset(source, tokenizer, { ...options, keepBadRows: badRowsFile(runDir, phase, of) }),
  );

/** Likewise of preferences. */
export const readPreferences = (
  how: typeof readAhead,
  { source, of, phase, runDir, tokenizer }: PhaseSource<PreferenceSource>,
  options: ToldOptions<PreferenceOptions>,
): Promise<PreferenceDataset> =>
  how(tokenizer, { source, settings: { ...options, listed: join(runDir, phase, of) } }, () =>
    loadPreferences(source, tokenizer, { ...options, keepBadRows: badRowsFile(runDir, phase, of) }),
  );
