import { PeriodicEvalError, type Tokenizer } from "@periodic-eval/core";
import { createHasher } from "@periodic-eval/core/random";
import { badRowsError, isBadRow, noRowsError, type BadRow } from "./bad-row.ts";
import { onlyFinite } from "./only-finite.ts";
import { readRows } from "./read-rows.ts";
import type { Dataset, DatasetOptions } from "./dataset.ts";
import { parsePreference, type PreferenceSource } from "./preference-rows.ts";
import { checkIds } from "./token-ids.ts";
import { renderPreference, type PreferencePair } from "./render-preference.ts";

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
