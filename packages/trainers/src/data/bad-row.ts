import { PeriodicEvalError } from "@periodic-eval/core";

export type BadRowReason =
  | "not_json"
  /** An object of the row has a key twice. */
  | "repeated_key"
  /** Bytes that are not UTF-8, or half of a surrogate pair. */
  | "invalid_text"
  | "line_too_long"
  | "unknown_form"
  | "broken_roles"
  | "broken_content"
  /** `tools` or `chat_template_kwargs` that no template reads. */
  | "broken_tools"
  | "empty"
  | "no_assistant_turn"
  | "template_failed"
  | "too_long"
  | "no_preference"
  /** A number in tools or calls that JavaScript reads as another number than Python. */
  | "lost_number"
  /** Reference log-probs above 0. */
  | "broken_reference";

/** A row that cannot be trained on unchanged. */
export interface BadRow {
  /** `file.jsonl:12` or `file.parquet:row 12`, counted from 1; `file.json[11]` or `dataset[11]`, counted from 0. */
  readonly where: string;
  readonly reason: BadRowReason;
  /** A description of the problem. */
  readonly got: string;
}

/** The problem of a row, or of a part of it. */
export type Fault = Omit<BadRow, "where">;

export const isBadRow = <T extends object>(row: T | BadRow): row is BadRow => "reason" in row;

/** Returns `rows.jsonl:3: too_long (300 tokens, 256 fit)`. */
const describeBadRow = ({ where, reason, got }: BadRow): string => `${where}: ${reason} (${got})`;

/**
 * Returns the text of a warning about the bad rows of a source; null if there are none.
 *
 * @param data Bad rows, the sentence that names the file that lists all of them, and the number of rows in the source.
 */
export function summarizeBadRows(
  {
    badRows,
    badRowsListed,
    rowsRead,
  }: {
    readonly badRows: readonly BadRow[];
    readonly badRowsListed: string | null;
    readonly rowsRead: number;
  },
  onBadRow: "drop" | "truncate" | "error",
): string | null {
  if (badRows.length === 0) return null;
  const first = badRows.slice(0, 5).map(describeBadRow).join("; ");
  const more = badRows.length > 5 ? "; …" : ".";
  const how = onBadRow === "truncate" ? "unchanged" : "and are left out";
  const listed = badRowsListed === null ? "" : ` ${badRowsListed}`;
  return `${badRows.length} of ${rowsRead} rows cannot be trained on ${how}: ${first}${more}${listed}`;
}

/**
 * Returns the error for bad rows with `onBadRow: "error"`. It names the first bad row.
 *
 * @param listed A sentence that names the file that lists all bad rows; null if there is no such file.
 */
export const badRowsError = (
  badRows: readonly BadRow[],
  { expected, listed }: { readonly expected: string; readonly listed: string | null },
): PeriodicEvalError => {
  const { where, reason, got } = badRows[0]!;
  const others = badRows.length - 1;
  return new PeriodicEvalError({
    code: "data",
    where,
    got: `${reason}: ${got}${others === 0 ? "" : `; and ${others} more bad rows`}`,
    expected,
    fix: sentences(
      `Correct ${others === 0 ? "the row" : "the rows"}, or set onBadRow to "drop" or "truncate".`,
      listed,
    ),
  });
};

const sentences = (...all: readonly (string | null)[]): string => all.filter((one) => one !== null).join(" ");

/** The most likely fix for a source whose rows are all bad, by the reason of the first. */
const fixes: Partial<Record<BadRowReason, string>> = {
  invalid_text: "Write the file as UTF-8, and decompress it unless it is a gzip file.",
  not_json:
    "Write JSON Lines: one JSON object per line, strings in double quotes; or a JSON array of objects, or a .parquet file. In Python, datasets.load_dataset(…).to_json(path) converts CSV and other files.",
};

/**
 * Returns the error for a source without a usable row.
 *
 * @param source A file's path, or rows.
 */
export const noRowsError = (
  source: unknown,
  badRows: readonly BadRow[],
  {
    expected,
    fix,
    listed,
  }: { readonly expected: string; readonly fix: string; readonly listed: string | null },
): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "data",
    where: typeof source === "string" ? source : "dataset",
    got:
      badRows.length === 0 ? "no rows" : `${badRows.length} rows, all bad (${describeBadRow(badRows[0]!)})`,
    expected,
    fix: sentences(fixes[badRows[0]?.reason ?? "empty"] ?? fix, badRows.length === 0 ? null : listed),
  });
