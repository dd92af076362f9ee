import { createHasher, PeriodicEvalError, type Tokenizer } from "@periodic-eval/core";
import { describeBadRow, isBadRow, type BadRow } from "./bad-row.ts";
import { readConversations, type ConversationSource } from "./conversations.ts";
import { renderRow, type TrainingRow } from "./render-row.ts";

/**
 * What happens to a row that cannot be trained on as it is: it is left out, or too long a row is cut on the right and
 * any other left out, or the first one is an error. It is reported and counted in any case.
 */
export type OnBadRow = "drop" | "truncate" | "error";

export interface DatasetOptions {
  /** In tokens. */
  readonly maxLength: number;
  readonly onBadRow: OnBadRow;
}

export interface Dataset {
  readonly rows: readonly TrainingRow[];
  /** Rows that could not be trained on as they are: left out, or cut and also among `rows`. */
  readonly badRows: readonly BadRow[];
  /** Of the source, the bad ones included. */
  readonly rowsRead: number;
  /** Hash of all ids and scored positions, in order. */
  readonly hash: string;
}

/** Reads and renders every row. Throws a `data` error where nothing is left to train on, and as `onBadRow` says. */
export async function loadDataset(
  source: ConversationSource,
  tokenizer: Tokenizer,
  { maxLength, onBadRow }: DatasetOptions,
): Promise<Dataset> {
  const rows: TrainingRow[] = [];
  const badRows: BadRow[] = [];
  const hasher = createHasher();
  let rowsRead = 0;
  for await (const read of readConversations(source)) {
    rowsRead += 1;
    const row = isBadRow(read)
      ? read
      : renderRow(tokenizer, read, { maxLength, truncate: onBadRow === "truncate" });
    if (!isBadRow(row)) {
      const { where, ids, scored, cutFrom } = row;
      rows.push(row);
      hasher.update(Int32Array.of(ids.length, scored.length)).update(ids).update(scored);
      if (cutFrom !== null)
        badRows.push({ where, reason: "too_long", got: `${cutFrom} tokens, cut to the first ${ids.length}` });
    } else if (onBadRow === "error") {
      throw badRowError(row);
    } else {
      badRows.push(row);
    }
  }
  if (rows.length === 0) {
    throw new PeriodicEvalError({
      code: "data",
      where: typeof source === "string" ? source : "dataset",
      got:
        badRows.length === 0 ? "no rows" : `${badRows.length} rows, all bad (${describeBadRow(badRows[0]!)})`,
      expected: "at least one row to train on",
      fix: 'Give rows {"prompt": [...], "completion": [...]} or {"messages": [...]} with an assistant turn.',
    });
  }
  return { rows, badRows, rowsRead, hash: hasher.digest() };
}

function badRowError({ where, reason, got }: BadRow): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "data",
    where,
    got: `${reason}: ${got}`,
    expected: "a conversation that fits and has an assistant turn",
    fix: 'Mend the row, or set onBadRow to "drop" or "truncate".',
  });
}
