import { type Tokenizer, PeriodicEvalError } from "@periodic-eval/core";
import { createHasher } from "@periodic-eval/core/random";
import {
  badRowsError,
  isBadRow,
  noRowsError,
  type BadRow,
  abbreviate,
  type KeepBadRows,
  onlyFinite,
} from "./bad-row.ts";
import { parseRow, type ParsedRow, type SFTRow } from "./forms.ts";
import {
  parsePreference,
  type PreferenceSource,
  renderPreference,
  type PreferencePair,
} from "./preference-rows.ts";
import { readRows, type ReadRowsOptions, type RowSource } from "./read-rows.ts";
import type { SourceRow } from "./json-rows.ts";
import { renderRow, type LossOn, type TrainingRow } from "./render-row.ts";
import { checkIds } from "./token-ids.ts";

/**
 * Handling of a row that cannot be trained on unchanged. `drop` leaves it out. `truncate` cuts a row that is too long on
 * the right and leaves out all others. `error` throws after all rows are read. Every such row is counted and reported.
 */
export type OnBadRow = "drop" | "truncate" | "error";

export interface DatasetOptions extends ReadRowsOptions {
  /** Maximum tokens per row. */
  readonly maxLength: number;
  readonly onBadRow: OnBadRow;
  /** The tokens that the loss covers. Default: depends on each row's form. */
  readonly loss?: LossOn | null;
  /** The model's vocabulary; a token outside is an error. Default: every token is valid. */
  readonly vocabSize?: number;
  /** Called once all rows are read, before any error about them. */
  readonly keepBadRows?: KeepBadRows;
}

export interface Dataset {
  readonly rows: readonly TrainingRow[];
  /** Rows that could not be trained on unchanged: left out, or truncated and also in `rows`. */
  readonly badRows: readonly BadRow[];
  /** A sentence that names the file that lists them; null if there are none, or without `keepBadRows`. */
  readonly badRowsListed: string | null;
  /** Rows in the source, bad ones included. */
  readonly rowsRead: number;
  /** Hash of all ids and scored positions, in order. */
  readonly hash: string;
  /** Surprises: unused columns, texts without an end-of-sequence token. */
  readonly warnings: readonly string[];
}

/** A row that can be trained on. */
interface UsableRow {
  readonly where: string;
  /** Tokens before truncation; null if the row is complete. */
  readonly cutFrom: number | null;
}

/** How the rows of a training method are read. */
interface RowKind<R extends UsableRow> {
  /** Renders a row, or returns why it is bad. */
  render(row: SourceRow): R | BadRow;
  sequences(row: R): readonly Pick<TrainingRow, "ids" | "scored">[];
  warnings(rows: readonly R[], rowsRead: number): readonly string[];
  /** Throws for rows that may not be trained on. Called once bad rows are listed. */
  check?(rows: readonly R[]): void;
  /** The expectation in the error of `onBadRow: "error"` about a bad row. */
  readonly unchanged: string;
  /** The expectation and the fix in the error about a source without a usable row. */
  readonly usable: { readonly expected: string; readonly fix: string };
}

/** Reads all rows of a source. Holds at most a line or a row group of it in memory besides the rows. */
async function collectRows<R extends UsableRow>(
  source: RowSource<unknown>,
  { maxLength, onBadRow, vocabSize = Infinity, keepBadRows, ...reading }: DatasetOptions,
  { render, sequences, warnings, check, unchanged, usable }: RowKind<R>,
): Promise<Omit<Dataset, "rows"> & { readonly rows: readonly R[] }> {
  const rows: R[] = [];
  const badRows: BadRow[] = [];
  const hasher = createHasher();
  let rowsRead = 0;
  for await (const read of readRows(source, reading)) {
    rowsRead += 1;
    const row = isBadRow(read) ? read : render(read);
    if (isBadRow(row)) {
      badRows.push(row);
      continue;
    }
    const { where, cutFrom } = row;
    for (const { ids, scored } of sequences(row)) {
      checkIds(where, ids, vocabSize);
      hasher.update(Int32Array.of(ids.length, scored.length)).update(ids).update(scored);
    }
    rows.push(row);
    if (cutFrom !== null)
      badRows.push({ where, reason: "too_long", got: `${cutFrom} tokens, cut to the first ${maxLength}` });
  }
  const listed = (await keepBadRows?.(badRows)) ?? null;
  check?.(rows);
  if (onBadRow === "error" && badRows.length > 0)
    throw badRowsError(badRows, { expected: unchanged, listed });
  if (rows.length === 0) throw noRowsError(source, badRows, { ...usable, listed });
  return {
    rows,
    badRows,
    badRowsListed: badRows.length === 0 ? null : listed,
    rowsRead,
    hash: hasher.digest(),
    warnings: warnings(rows, rowsRead),
  };
}

/**
 * Reads and renders every row. Holds at most a line or a row group of the source in memory, and the ids and scored positions
 * of all rows, four bytes each.
 *
 * @throws PeriodicEvalError `data` if no row is left to train on, or for bad rows with `onBadRow: "error"`; `config` if
 *   `loss` does not fit a row's form, or for tokens outside `vocabSize`.
 */
export async function loadDataset(
  source: RowSource<SFTRow>,
  tokenizer: Tokenizer,
  { loss = null, ...options }: DatasetOptions,
): Promise<Dataset> {
  const { maxLength, onBadRow } = options;
  const surprises = collectSurprises(tokenizer);
  return collectRows<TrainingRow>(source, options, {
    render({ value, where }) {
      const parsed = onlyFinite(parseRow(value, where));
      if (isBadRow(parsed)) return parsed;
      surprises.see(parsed);
      return renderRow(tokenizer, parsed, { maxLength, loss, truncate: onBadRow === "truncate" });
    },
    sequences: (row) => [row],
    warnings: (rows, rowsRead) => [...surprises.warnings(), ...formWarnings(rows, rowsRead)],
    unchanged: "a row that can be trained on unchanged",
    usable: {
      expected: "at least one row to train on",
      fix: "Use rows with messages and an assistant turn, with prompt and completion, or with text.",
    },
  });
}

/** Names the rows that training writes or scores otherwise than the template does. */
function formWarnings(rows: readonly TrainingRow[], rowsRead: number): readonly string[] {
  const warn = (form: TrainingRow["form"], text: (these: string) => string) => {
    const some = rows.filter((row) => row.form === form);
    return some.length === 0 ? [] : [text(`${some.length} of ${rowsRead} rows (first: ${some[0]!.where})`)];
  };
  return [
    ...warn(
      "rewritten",
      (these) =>
        `earlier answers of ${these} are written with their thinking, as the chat template writes the last ` +
        "answer: the template leaves it out, TRL's training templates do not",
    ),
    ...warn(
      "whole",
      (these) =>
        `all tokens of ${these} are scored, or all of their completion: the chat template does not reveal which ` +
        "the assistant writes; mark them in it with {% generation %}",
    ),
  ];
}

/** A file can have a new column in every row, so the list is bounded. */
const maxColumns = 20;

function collectSurprises({ eosId = null }: Tokenizer) {
  const columns = new Set<string>();
  let isEndless = false;
  return {
    see({ kind, unused }: Pick<ParsedRow, "kind" | "unused">): void {
      for (const name of unused) if (columns.size < maxColumns) columns.add(abbreviate(name));
      isEndless ||= kind === "text" && eosId === null;
    },
    warnings(): readonly string[] {
      const list = [...columns].join(", ") + (columns.size < maxColumns ? "" : ", …");
      return [
        ...(columns.size > 0 ? [`unused columns: ${list}`] : []),
        ...(isEndless
          ? ["texts end without an end-of-sequence token, because the tokenizer has none (eosId)"]
          : []),
      ];
    },
  };
}

export interface PreferenceOptions extends Omit<DatasetOptions, "loss"> {
  /** Whether each row must have the reference's log-probs. */
  readonly isPrecomputed: boolean;
}

export interface PreferenceDataset extends Omit<Dataset, "rows"> {
  readonly rows: readonly PreferencePair[];
}

/**
 * Reads and renders every pair.
 *
 * @throws PeriodicEvalError `data` if no pair is left to train on, for bad rows with `onBadRow: "error"`, and for a pair with
 *   precomputed reference that would be truncated.
 */
export async function loadPreferences(
  source: PreferenceSource,
  tokenizer: Tokenizer,
  { isPrecomputed, ...options }: PreferenceOptions,
): Promise<PreferenceDataset> {
  const { maxLength, onBadRow } = options;
  const surprises = collectSurprises(tokenizer);
  const shared: string[] = [];
  return collectRows<PreferencePair>(source, options, {
    render({ value, where }) {
      const parsed = onlyFinite(parsePreference(value, { where, isPrecomputed }));
      if (isBadRow(parsed)) return parsed;
      surprises.see(parsed);
      if (parsed.isPromptShared) shared.push(where);
      return renderPreference(tokenizer, parsed, { maxLength, truncate: onBadRow === "truncate" });
    },
    sequences: ({ chosen, rejected }) => [chosen, rejected],
    check(pairs) {
      const cut = isPrecomputed ? pairs.find(({ cutFrom }) => cutFrom !== null) : undefined;
      if (cut !== undefined) throw precomputedCutError(cut.where, cut.cutFrom!, maxLength);
    },
    warnings(pairs, rowsRead) {
      const parted = pairs.filter(({ promptTail }) => promptTail > 0);
      const early = `the prompt of ${shared.length} of ${rowsRead} rows (first: ${shared[0]}) is the common beginning of chosen and rejected`;
      const others = [...surprises.warnings(), ...(shared.length === 0 ? [] : [early])];
      if (parted.length === 0) return others;
      return [
        ...others,
        `${parted.length} of ${rowsRead} prompts end with other tokens when rendered without a completion ` +
          `(${parted[0]!.where}); completions are scored from the first different token`,
      ];
    },
    unchanged: "a prompt and two completions that fit",
    usable: {
      expected: "at least one pair to train on",
      fix: 'Use rows {"prompt": [...], "chosen": [...], "rejected": [...]}, arrays of messages or strings.',
    },
  });
}

/** Precomputed log-probs belong to whole sequences and do not apply to truncated ones. */
function precomputedCutError(where: string, tokens: number, maxLength: number): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "data",
    where,
    got: `a pair of ${tokens} tokens to be cut to ${maxLength}, with ref_chosen_logps and ref_rejected_logps of the whole pair`,
    expected: "a pair that fits",
    fix: `Set maxLength to ${tokens} or more, onBadRow: "drop" to leave such pairs out, or reference: "copy".`,
  });
}
