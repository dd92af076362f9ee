import type * as z from "zod";
import { PeriodicEvalError, type ErrorCode, type ValuePath } from "../errors.ts";
import { dataError, pathText } from "./config-error.ts";
import { describeZodIssue } from "./describe-zod-issue.ts";
import { abbreviated, quoteValue } from "./messages.ts";
import { didYouMean } from "./nearest.ts";
import { fixAt, keysOf } from "./parse-options.ts";
import { isRecord, valueAt } from "./values.ts";

/** A wrong field of a row, in the words of an error. */
export interface RowFault {
  /** Empty for the row as a whole. */
  readonly path: ValuePath;
  readonly got: string;
  readonly expected: string;
  /** Null if nothing more than the expectation is known. */
  readonly fix: string | null;
}

/** Returns a value of a row, shortened for an error. */
export const shortened = (value: unknown): string => quoteValue(value, 58);

/** Describes a wrong or missing field of a row, for an error. */
export const fieldText = (row: Readonly<Record<string, unknown>>, name: string, path = name): string =>
  row[name] === undefined
    ? `no ${path} (keys: ${abbreviated(Object.keys(row).join(", "), 200) || "none"})`
    : `${path} = ${shortened(row[name])}`;

/** Returns everything that a schema refuses in a row: unknown keys, then fields in the order of the schema. */
export function rowFaults(schema: z.ZodType, row: unknown): readonly RowFault[] {
  const issues = schema.safeParse(row).error?.issues ?? [];
  const known = keysOf(schema) ?? [];
  const keys = issues.flatMap((issue) =>
    issue.code === "unrecognized_keys" && issue.path.length === 0 ? issue.keys : [],
  );
  const unknown = keys.map((key) => ({
    path: [key],
    got: `the unknown key "${key}"`,
    expected: known.length === 0 ? "no keys" : `some of ${known.join(", ")}`,
    fix: didYouMean(key, known) ?? "Remove it.",
  }));
  const fields = issues.filter(({ code, path }) => code !== "unrecognized_keys" || path.length > 0);
  return [...unknown, ...fields.map((issue) => faultOf(schema, issue, row))];
}

function faultOf(schema: z.ZodType, issue: z.core.$ZodIssue, row: unknown): RowFault {
  const { path, value, expected } = describeZodIssue({ issues: [issue] }, row);
  const fix =
    typeof value === "number" && /^a (non-empty )?string$/.test(expected)
      ? "Put it in quotes."
      : fixAt(schema, path, value);
  if (path.length === 0) return { path, got: shortened(value), expected, fix };
  const [holder, name] = [valueAt(row, path.slice(0, -1)), pathText(path).slice(1)];
  const got = isRecord(holder)
    ? fieldText(holder, String(path.at(-1)), name)
    : `${name} = ${shortened(value)}`;
  return { path, got, expected: `${name}: ${expected}`, fix };
}

/**
 * Checks a row of a file against a schema, and returns what the schema makes of it.
 *
 * @param where The row's file and line.
 * @param fix What to do about a field whose schema has no fix.
 * @throws PeriodicEvalError `data` for the first wrong field: `got question = 7, expected question: a string`.
 */
export function parseRow<S extends z.ZodType>(
  where: string,
  schema: S,
  row: unknown,
  fix: string,
): z.output<S> {
  const parsed = schema.safeParse(row);
  if (parsed.success) return parsed.data;
  const fault = rowFaults(schema, row)[0]!;
  throw dataError(where, fault.got, fault.expected, fault.fix ?? fix);
}

/** The fixed parts of the error for the content of a file. */
export interface ContentPlace {
  readonly code: ErrorCode;
  /** The file, or another name of the content. */
  readonly where: string;
  readonly fix: string;
}

/**
 * Checks the content of a file against a schema, and returns what the schema makes of it.
 *
 * @throws PeriodicEvalError for the first wrong field, with its `path`.
 */
export function parseContent<S extends z.ZodType>(
  schema: S,
  value: unknown,
  { code, where, fix }: ContentPlace,
): z.output<S> {
  const { success, data, error: cause } = schema.safeParse(value);
  if (success) return data;
  const { path, value: wrong, expected } = describeZodIssue(cause, value);
  const field = path.length === 0 ? where : `${where}: ${pathText(path).replace(/^\./, "")}`;
  const got = abbreviated(quoteValue(wrong), 80);
  throw new PeriodicEvalError({ code, where: field, path, got, expected, fix, cause });
}
