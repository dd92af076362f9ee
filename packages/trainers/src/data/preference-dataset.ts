import { PeriodicEvalError, type Tokenizer } from "@periodic-eval/core";
import { createHasher } from "@periodic-eval/core/random";
import { badRowsError, isBadRow, nothingLeft, type BadRow } from "./bad-row.ts";
import { readRows } from "./read-rows.ts";
import type { DatasetOptions } from "./dataset.ts";
import { parsePreference, type PreferenceSource } from "./preference-rows.ts";
import { checkIds } from "./token-ids.ts";
import { renderPreference, type PreferencePair } from "./render-preference.ts";

export interface PreferenceOptions extends Omit<DatasetOptions, "loss"> {
  /** Whether each row must tell the reference's log-probs. */
  readonly isPrecomputed: boolean;
}

export interface PreferenceDataset {
  readonly rows: readonly PreferencePair[];
  /** Rows that could not be trained on as they are: left out, or cut and also among `rows`. */
  readonly badRows: readonly BadRow[];
  /** As of a `Dataset`. */
  readonly badRowsListed: string | null;
  /** Of the source, the bad ones included. */
  readonly rowsRead: number;
  /** Hash of all ids and scored positions, in order. */
  readonly hash: string;
  /** As of a `Dataset`. */
  readonly warnings: readonly string[];
}

/**
 * Reads and renders every pair.
 *
 * @throws PeriodicEvalError `data` where nothing is left to train on, as `onBadRow` says, and where a pair would be cut
 *   whose reference is precomputed.
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
  let refused: PeriodicEvalError | null = null;
  for await (const read of readRows(source, reading)) {
    rowsRead += 1;
    const parsed = isBadRow(read) ? read : parsePreference(read.value, read.where, isPrecomputed);
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
    if (cutFrom !== null && isPrecomputed) refused ??= cutBesideNumbers(where, cutFrom, maxLength);
    if (cutFrom !== null)
      badRows.push({ where, reason: "too_long", got: `${cutFrom} tokens, cut to the first ${maxLength}` });
  }
  const listed = (await keepBadRows?.(badRows)) ?? null;
  if (refused !== null) throw refused;
  if (onBadRow === "error" && badRows.length > 0)
    throw badRowsError(badRows, { expected: "a prompt and two answers that fit", listed });
  if (rows.length === 0)
    throw nothingLeft(source, badRows, {
      expected: "at least one pair to train on",
      fix: 'Give rows {"prompt": [...], "chosen": [...], "rejected": [...]}, lists of messages or texts.',
      listed,
    });
  const parted = rows.filter(({ promptTail }) => promptTail > 0);
  const warnings =
    parted.length === 0
      ? []
      : [
          `${parted.length} of ${rowsRead} prompts end otherwise alone than before an answer (${parted[0]!.where}); ` +
            "answers are scored from where they part",
        ];
  const badRowsListed = badRows.length === 0 ? null : listed;
  return { rows, badRows, badRowsListed, rowsRead, hash: hasher.digest(), warnings };
}

/** The numbers that a row tells are of its whole sequences: against a cut one they would be another's. */
function cutBesideNumbers(where: string, tokens: number, maxLength: number): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "data",
    where,
    got: `a pair of ${tokens} tokens to be cut to ${maxLength}, with ref_chosen_logps and ref_rejected_logps of the whole`,
    expected: "a pair that fits",
    fix: `Set maxLength to ${tokens} or more, onBadRow: "drop" to leave such pairs out, or reference: "copy".`,
  });
}
