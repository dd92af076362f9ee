import { PeriodicEvalError } from "@periodic-eval/core";

export type BadRowReason =
  | "not_json"
  /** Bytes that are no UTF-8, or half of a surrogate pair. */
  | "invalid_text"
  | "line_too_long"
  | "unknown_form"
  | "broken_roles"
  | "broken_content"
  | "empty"
  | "no_assistant_turn"
  | "template_failed"
  | "too_long"
  | "no_preference"
  /** Numbers of the reference that no log-probs can be. */
  | "broken_reference";

/** A row that cannot be trained on as it is. */
export interface BadRow {
  /** `file.jsonl:12` and `file.parquet:row 12`, from 1; or `dataset[11]`, from 0. */
  readonly where: string;
  readonly reason: BadRowReason;
  /** What was found, in words. */
  readonly got: string;
}

/** What is wrong with a row, or with a part of it. */
export type Fault = Omit<BadRow, "where">;

export const isBadRow = <T extends object>(row: T | BadRow): row is BadRow => "reason" in row;

/** `rows.jsonl:3: too_long (300 tokens, 256 fit)` */
export const describeBadRow = ({ where, reason, got }: BadRow): string => `${where}: ${reason} (${got})`;

/**
 * The error that bad rows are where `onBadRow` is `error`: it stands at the first.
 *
 * @param listed a sentence that says where all of them can be read; null where nobody keeps them
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
      `Mend ${others === 0 ? "the row" : "the rows"}, or set onBadRow to "drop" or "truncate".`,
      listed,
    ),
  });
};

const sentences = (...all: readonly (string | null)[]): string => all.filter((one) => one !== null).join(" ");

/** What is most likely amiss with a file whose every row is bad, by the first. */
const hints: Partial<Record<BadRowReason, string>> = {
  invalid_text: "Write the file as UTF-8, and unpack it where it is compressed.",
  not_json:
    "Write JSON Lines: one JSON object a line, strings in double quotes, no NaN; or name a .parquet file.",
};

/**
 * The error where no row of a source is left.
 *
 * @param source a file's path, or rows
 */
export const nothingLeft = (
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
    fix: sentences(hints[badRows[0]?.reason ?? "empty"] ?? fix, badRows.length === 0 ? null : listed),
  });
