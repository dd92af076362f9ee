import { dataError, errorMessage } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import { isMarkedNumber, withoutMark } from "@periodic-eval/data";
import { writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import { dirname, join, rm } from "@periodic-eval/store/platform";

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
  /** A chat whose tokens cannot be aligned with its text, so that the assistant's are unknown. */
  | "unaligned_tokens"
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
  const more = badRows.length - 1;
  return new PeriodicEvalError({
    code: "data",
    where,
    got: `${reason}: ${got}${more === 0 ? "" : `; and ${more} more bad rows`}`,
    expected,
    fix: sentences(
      `Correct ${more === 0 ? "the row" : "the rows"}, or set onBadRow to "drop" or "truncate".`,
      listed,
    ),
  });
};

const sentences = (...all: readonly (string | null)[]): string => all.filter((s) => s !== null).join(" ");

/** The most likely fix for a source whose rows are all bad, by the reason of the first. */
const fixes: Partial<Record<BadRowReason, string>> = {
  invalid_text: "Write the file as UTF-8, and decompress it unless it is a gzip file.",
  not_json:
    "Write JSON Lines: one JSON object per line, strings in double quotes; or a JSON array of objects, or a .parquet file. In Python, datasets.load_dataset(…).to_json(path) converts CSV and other files.",
};

/** Returns the error for a row that cannot be parsed, where all rows are needed. */
export const badRowError = ({ where, reason, got }: BadRow): PeriodicEvalError =>
  dataError(where, `${reason}: ${got}`, "a training row", fixes[reason] ?? "Correct or remove it.");

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

/** Returns a short description of any value for an error message. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "function") return "a function";
  if (isMarkedNumber(value)) return withoutMark(value);
  if (typeof value === "string") return JSON.stringify(abbreviate(value));
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : `an array of ${value.length}`;
  if (typeof value === "object" && value !== null) {
    const names = listKeys(value);
    return names === "" ? "an empty object" : `an object of ${names}`;
  }
  return value === null ? "null" : (value as boolean | number | bigint).toString();
}

const maxKeys = 8;

export function listKeys(value: object): string {
  const names = Object.keys(value).map(withoutMark);
  const listed = names.slice(0, maxKeys).map(abbreviate).join(", ");
  return names.length > maxKeys ? `${listed}, …` : listed;
}

export const abbreviate = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text);

/** Writes a list of all bad rows of a source, which may be empty. Returns a sentence that names the file. */
export type KeepBadRows = (badRows: readonly BadRow[]) => Promise<string>;

/** The source of a phase's rows: the dataset, or separate validation rows. */
export type RowsOf = "dataset" | "validation";

/**
 * Returns a function that lists bad rows in `<runDir>/bad_rows/<phase>/dataset.jsonl`, or `validation.jsonl`: `where`,
 * `reason` and `got`, one row per line. It replaces the list of an earlier reading. If the list cannot be written, the
 * sentence says so; this neither stops training nor hides another error.
 */
export function badRowsFile(runDir: string, phase: string, of: RowsOf): KeepBadRows {
  const path = join(runDir, "bad_rows", phase, `${of}.jsonl`);
  return async (badRows) => {
    try {
      if (badRows.length === 0) await rm(path, { force: true });
      else {
        await nodeFiles.makeFolder(dirname(path));
        await writeFileAtomic(path, async (file) => {
          for (let from = 0; from < badRows.length; from += 4096) {
            const some = badRows.slice(from, from + 4096);
            const lines = some.map(({ where, reason, got }) => JSON.stringify({ where, reason, got }));
            await file.write(`${lines.join("\n")}\n`);
          }
        });
      }
      return `All bad rows are listed in ${path}.`;
    } catch (error) {
      return `The list of all bad rows cannot be written: ${errorMessage(error)}`;
    }
  };
}

/** Returns a parsed row, or the bad row for NaN or an infinite number in it, which no template prints as Python does. */
export function onlyFinite<T extends { readonly where: string }>(parsed: T | BadRow): T | BadRow {
  const fault = isBadRow(parsed) ? null : infinitePart(parsed);
  return fault === null ? parsed : { where: parsed.where, ...fault };
}

/** @param part A parsed row, so that columns that nobody reads do not count. */
function infinitePart(part: unknown, path = ""): Fault | null {
  if (typeof part === "number" && !Number.isFinite(part))
    return { reason: "broken_content", got: `${path} ${part} instead of a finite number` };
  if (typeof part !== "object" || part === null || ArrayBuffer.isView(part)) return null;
  for (const [name, inner] of Object.entries(part)) {
    const at = Array.isArray(part) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    const inside = infinitePart(inner, at);
    if (inside !== null) return inside;
  }
  return null;
}
