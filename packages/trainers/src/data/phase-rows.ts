import { aboutOption } from "@periodic-eval/contracts/options";
import { canonicalJson } from "@periodic-eval/core/random";
import { stat } from "@periodic-eval/store/browser";
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
import { filesOf, type RowSource } from "./read-rows.ts";

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
  const listed = runDir === null ? null : join(runDir, phase, of);
  const keepBadRows = runDir === null ? {} : { keepBadRows: badRowsFile(runDir, phase, of) };
  try {
    const key = await keyOf(source, of, { ...options, listed });
    if (key === null) return await load(source, tokenizer, { ...options, ...keepBadRows, of });
    const cached = ahead.get(tokenizer) ?? new Map<string, unknown>();
    const rows = cached.has(key)
      ? (cached.get(key) as T)
      : await load(source, tokenizer, { ...options, ...keepBadRows, of });
    if (isAhead) ahead.set(tokenizer, cached.set(key, rows));
    else cached.delete(key);
    return rows;
  } catch (error) {
    throw aboutOption(error, { where: of, path: [of] });
  }
}

/** Rows that were read ahead, by tokenizer, source and settings. They live as long as the tokenizer. */
const ahead = new WeakMap<Tokenizer, Map<string, unknown>>();

/** Identifies the files of a source in their current state, and the settings. Null for rows in memory and for a missing file. */
async function keyOf(
  source: unknown,
  of: RowsOf,
  settings: Readonly<Record<string, Json>>,
): Promise<string | null> {
  if (typeof source !== "string") return null;
  const paths = (await filesOf(source, of)).map(({ path }) => path);
  try {
    const states = await Promise.all(paths.map((path) => stat(path, { bigint: true })));
    const files = states.map(({ dev, ino, size, mtimeNs }) => [dev, ino, size, mtimeNs].map(String));
    return canonicalJson({ source, settings, files });
  } catch {
    return null;
  }
}
