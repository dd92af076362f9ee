import type { Tokenizer } from "@periodic-eval/core";
import { createHasher } from "@periodic-eval/core/random";
import { badRowsError, isBadRow, nothingLeft, type BadRow } from "./bad-row.ts";
import type { KeepBadRows } from "./bad-rows-file.ts";
import { parseRow, type ParsedRow, type SFTRow } from "./forms.ts";
import { abbreviated } from "./in-words.ts";
import { readRows, type ReadRowsOptions, type RowSource } from "./read-rows.ts";
import { checkIds } from "./token-ids.ts";
import { renderRow, type LossOn, type TrainingRow } from "./render-row.ts";

/**
 * What happens to a row that cannot be trained on as it is: it is left out, or too long a row is cut on the right and
 * any other left out, or it is an error once all rows are read. It is reported and counted in any case.
 */
export type OnBadRow = "drop" | "truncate" | "error";

export interface DatasetOptions extends ReadRowsOptions {
  /** In tokens. */
  readonly maxLength: number;
  readonly onBadRow: OnBadRow;
  /** What the loss looks at; by default what each row's form has it look at. */
  readonly loss?: LossOn | null;
  /** Of the model, which a row with other tokens is an error for; by default any token goes. */
  readonly vocabSize?: number;
  /** Called once all rows are read, before any error about them. */
  readonly keepBadRows?: KeepBadRows;
}

export interface Dataset {
  readonly rows: readonly TrainingRow[];
  /** Rows that could not be trained on as they are: left out, or cut and also among `rows`. */
  readonly badRows: readonly BadRow[];
  /** A sentence that says where all of them are listed; null where there are none, or `keepBadRows` was not given. */
  readonly badRowsListed: string | null;
  /** Of the source, the bad ones included. */
  readonly rowsRead: number;
  /** Hash of all ids and scored positions, in order. */
  readonly hash: string;
  /** What its owner may not expect: columns that are not used, texts that end without a token for it. */
  readonly warnings: readonly string[];
}

/**
 * Reads and renders every row. Of the source no more is in memory than a line or a row group; of what it holds, ids and
 * scored positions stay, of four bytes each.
 *
 * @throws PeriodicEvalError `data` where nothing is left to train on, and as `onBadRow` says; `config` where `loss` is
 *   none for a row's form, and for tokens beyond `vocabSize`.
 */
export async function loadDataset(
  source: RowSource<SFTRow>,
  tokenizer: Tokenizer,
  { maxLength, onBadRow, loss = null, vocabSize = Infinity, keepBadRows, ...reading }: DatasetOptions,
): Promise<Dataset> {
  const rows: TrainingRow[] = [];
  const badRows: BadRow[] = [];
  const surprises = surprisesOf(tokenizer);
  const hasher = createHasher();
  let rowsRead = 0;
  for await (const read of readRows(source, reading)) {
    rowsRead += 1;
    const parsed = isBadRow(read) ? read : parseRow(read.value, read.where);
    if (!isBadRow(parsed)) surprises.see(parsed);
    const row = isBadRow(parsed)
      ? parsed
      : renderRow(tokenizer, parsed, { maxLength, loss, truncate: onBadRow === "truncate" });
    if (!isBadRow(row)) {
      const { where, ids, scored, cutFrom } = row;
      checkIds(where, ids, vocabSize);
      rows.push(row);
      hasher.update(Int32Array.of(ids.length, scored.length)).update(ids).update(scored);
      if (cutFrom !== null)
        badRows.push({ where, reason: "too_long", got: `${cutFrom} tokens, cut to the first ${ids.length}` });
    } else {
      badRows.push(row);
    }
  }
  const listed = (await keepBadRows?.(badRows)) ?? null;
  if (onBadRow === "error" && badRows.length > 0)
    throw badRowsError(badRows, { expected: "a row that can be trained on as it is", listed });
  if (rows.length === 0)
    throw nothingLeft(source, badRows, {
      expected: "at least one row to train on",
      fix: "Give rows of messages with an assistant turn, of prompt and completion, or of text.",
      listed,
    });
  const badRowsListed = badRows.length === 0 ? null : listed;
  return { rows, badRows, badRowsListed, rowsRead, hash: hasher.digest(), warnings: surprises.warnings() };
}

/** More are not listed: a file can have a new column in every row. */
const mostColumns = 20;

function surprisesOf({ eosId = null }: Tokenizer) {
  const columns = new Set<string>();
  let isEndless = false;
  return {
    see({ kind, unused }: ParsedRow): void {
      for (const name of unused) if (columns.size < mostColumns) columns.add(abbreviated(name));
      isEndless ||= kind === "text" && eosId === null;
    },
    warnings(): readonly string[] {
      const list = [...columns].join(", ") + (columns.size < mostColumns ? "" : ", …");
      return [
        ...(columns.size > 0 ? [`columns that are not used: ${list}`] : []),
        ...(isEndless
          ? ["texts end without an end-of-sequence token, because the tokenizer has none (eosId)"]
          : []),
      ];
    },
  };
}
