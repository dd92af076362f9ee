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
  { maxLength, onBadRow, loss = null, vocabSize = Infinity, keepBadRows, ...reading }: DatasetOptions,
): Promise<Dataset> {
  const rows: TrainingRow[] = [];
  const badRows: BadRow[] = [];
  const surprises = collectSurprises(tokenizer);
  const forms = collectForms();
  const hasher = createHasher();
  let rowsRead = 0;
  for await (const read of readRows(source, reading)) {
    rowsRead += 1;
    const parsed = isBadRow(read) ? read : onlyFinite(parseRow(read.value, read.where));
    if (!isBadRow(parsed)) surprises.see(parsed);
    const row = isBadRow(parsed)
      ? parsed
      : renderRow(tokenizer, parsed, { maxLength, loss, truncate: onBadRow === "truncate" });
    if (!isBadRow(row)) {
      const { where, ids, scored, cutFrom } = row;
      checkIds(where, ids, vocabSize);
      rows.push(row);
      forms.see(row);
      hasher.update(Int32Array.of(ids.length, scored.length)).update(ids).update(scored);
      if (cutFrom !== null)
        badRows.push({ where, reason: "too_long", got: `${cutFrom} tokens, cut to the first ${ids.length}` });
    } else {
      badRows.push(row);
    }
  }
  const listed = (await keepBadRows?.(badRows)) ?? null;
  if (onBadRow === "error" && badRows.length > 0)
    throw badRowsError(badRows, { expected: "a row that can be trained on unchanged", listed });
  if (rows.length === 0)
    throw noRowsError(source, badRows, {
      expected: "at least one row to train on",
      fix: "Use rows with messages and an assistant turn, with prompt and completion, or with text.",
      listed,
    });
  const badRowsListed = badRows.length === 0 ? null : listed;
  return {
    rows,
    badRows,
    badRowsListed,
    rowsRead,
    hash: hasher.digest(),
    warnings: [...surprises.warnings(), ...forms.warnings(rowsRead)],
  };
}

/** Counts the rows that training writes or scores otherwise than the template does. */
function collectForms() {
  const counts = { rewritten: 0, whole: 0 };
  const first = { rewritten: "", whole: "" };
  return {
    see({ form, where }: TrainingRow): void {
      if (form === null) return;
      if (counts[form] === 0) first[form] = where;
      counts[form] += 1;
    },
    warnings(rowsRead: number): readonly string[] {
      const of = (form: "rewritten" | "whole") =>
        `${counts[form]} of ${rowsRead} rows (first: ${first[form]})`;
      return [
        ...(counts.rewritten > 0
          ? [
              `earlier answers of ${of("rewritten")} are written with their thinking, as the chat template writes the last ` +
                "answer: the template leaves it out, TRL's training templates do not",
            ]
          : []),
        ...(counts.whole > 0
          ? [
              `all tokens of ${of("whole")} are scored, or all of their completion: the chat template does not reveal which ` +
                "the assistant writes; mark them in it with {% generation %}",
            ]
          : []),
      ];
    },
  };
}

/** A file can have a new column in every row, so the list is bounded. */
const maxColumns = 20;

function collectSurprises({ eosId = null }: Tokenizer) {
  const columns = new Set<string>();
  let isEndless = false;
  return {
    see({ kind, unused }: ParsedRow): void {
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
  { maxLength, onBadRow, isPrecomputed, vocabSize = Infinity, keepBadRows, ...reading }: PreferenceOptions,
): Promise<PreferenceDataset> {
  const rows: PreferencePair[] = [];
  const badRows: BadRow[] = [];
  const hasher = createHasher();
  let rowsRead = 0;
  let cutError: PeriodicEvalError | null = null;
  for await (const read of readRows(source, reading)) {
    rowsRead += 1;
    const parsed = isBadRow(read)
      ? read
      : onlyFinite(parsePreference(read.value, { ...read, isPrecomputed }));
    const pair = isBadRow(parsed)
      ? parsed
      : renderPreference(tokenizer, parsed, { maxLength, truncate: onBadRow === "truncate" });
    if (isBadRow(pair)) {
      badRows.push(pair);
      continue;
    }
    rows.push(pair);
    for (const { ids, scored } of [pair.chosen, pair.rejected]) {
      checkIds(pair.where, ids, vocabSize);
      hasher.update(Int32Array.of(ids.length, scored.length)).update(ids).update(scored);
    }
    const { where, cutFrom } = pair;
    if (cutFrom !== null && isPrecomputed) cutError ??= precomputedCutError(where, cutFrom, maxLength);
    if (cutFrom !== null)
      badRows.push({ where, reason: "too_long", got: `${cutFrom} tokens, cut to the first ${maxLength}` });
  }
  const listed = (await keepBadRows?.(badRows)) ?? null;
  if (cutError !== null) throw cutError;
  if (onBadRow === "error" && badRows.length > 0)
    throw badRowsError(badRows, { expected: "a prompt and two completions that fit", listed });
  if (rows.length === 0)
    throw noRowsError(source, badRows, {
      expected: "at least one pair to train on",
      fix: 'Use rows {"prompt": [...], "chosen": [...], "rejected": [...]}, arrays of messages or strings.',
      listed,
    });
  const parted = rows.filter(({ promptTail }) => promptTail > 0);
  const warnings =
    parted.length === 0
      ? []
      : [
          `${parted.length} of ${rowsRead} prompts end with other tokens when rendered without a completion ` +
            `(${parted[0]!.where}); completions are scored from the first different token`,
        ];
  const badRowsListed = badRows.length === 0 ? null : listed;
  return { rows, badRows, badRowsListed, rowsRead, hash: hasher.digest(), warnings };
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
