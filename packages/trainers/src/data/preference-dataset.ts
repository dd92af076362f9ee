import { createHasher, PeriodicEvalError, type Tokenizer } from "@periodic-eval/core";
import { describeBadRow, isBadRow, type BadRow } from "./bad-row.ts";
import { readRows } from "./read-rows.ts";
import type { DatasetOptions } from "./dataset.ts";
import { parsePreference, type PreferenceSource } from "./preference-rows.ts";
import { renderPreference, type PreferencePair } from "./render-preference.ts";

export interface PreferenceOptions extends Omit<DatasetOptions, "loss"> {
  /** Whether each row must tell the reference's log-probs. */
  readonly isPrecomputed: boolean;
  warn(where: string, message: string): void;
}

export interface PreferenceDataset {
  readonly rows: readonly PreferencePair[];
  /** Rows that could not be trained on as they are: left out, or cut and also among `rows`. */
  readonly badRows: readonly BadRow[];
  /** Of the source, the bad ones included. */
  readonly rowsRead: number;
  /** Hash of all ids and scored positions, in order. */
  readonly hash: string;
}

/** Reads and renders every pair. Throws a `data` error where nothing is left to train on, and as `onBadRow` says. */
export async function loadPreferences(
  source: PreferenceSource,
  tokenizer: Tokenizer,
  { maxLength, onBadRow, isPrecomputed, warn, ...reading }: PreferenceOptions,
): Promise<PreferenceDataset> {
  const rows: PreferencePair[] = [];
  const badRows: BadRow[] = [];
  const hasher = createHasher();
  let rowsRead = 0;
  for await (const read of readRows(source, reading)) {
    rowsRead += 1;
    const parsed = isBadRow(read) ? read : parsePreference(read.value, read.where, isPrecomputed);
    const pair = isBadRow(parsed)
      ? parsed
      : renderPreference(tokenizer, parsed, { maxLength, truncate: onBadRow === "truncate" });
    if (isBadRow(pair)) {
      if (onBadRow === "error") throw badPair(pair);
      badRows.push(pair);
      continue;
    }
    rows.push(pair);
    for (const { ids, scored } of [pair.chosen, pair.rejected])
      hasher.update(Int32Array.of(ids.length, scored.length)).update(ids).update(scored);
    const { where, cutFrom } = pair;
    if (cutFrom !== null)
      badRows.push({ where, reason: "too_long", got: `${cutFrom} tokens, cut to the first ${maxLength}` });
  }
  if (rows.length === 0) throw nothingLeft(source, badRows);
  const parted = rows.filter(({ promptTail }) => promptTail > 0);
  if (parted.length > 0) {
    warn(
      "dataset",
      `${parted.length} of ${rowsRead} prompts end otherwise alone than before an answer (${parted[0]!.where}); ` +
        "answers are scored from where they part",
    );
  }
  return { rows, badRows, rowsRead, hash: hasher.digest() };
}

function nothingLeft(source: PreferenceSource, badRows: readonly BadRow[]): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "data",
    where: typeof source === "string" ? source : "dataset",
    got:
      badRows.length === 0 ? "no rows" : `${badRows.length} rows, all bad (${describeBadRow(badRows[0]!)})`,
    expected: "at least one pair to train on",
    fix: 'Give rows {"prompt": [...], "chosen": [...], "rejected": [...]}, lists of messages or texts.',
  });
}

function badPair({ where, reason, got }: BadRow): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "data",
    where,
    got: `${reason}: ${got}`,
    expected: "a prompt and two answers that fit",
    fix: 'Mend the row, or set onBadRow to "drop" or "truncate".',
  });
}
