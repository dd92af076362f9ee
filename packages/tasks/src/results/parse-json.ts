import { PeriodicEvalError, type ErrorCode } from "@periodic-eval/core";
import { abbreviated, describeZodIssue, pathText, quoteValue } from "@periodic-eval/contracts/options";
import { strictJson } from "@periodic-eval/data";
import type * as z from "zod";

/** The fixed parts of the error for a wrong value. */
export interface ErrorPlace {
  readonly code: ErrorCode;
  /** The file, or another name of the value. */
  readonly where: string;
  readonly fix: string;
}

/**
 * Checks a value that is not options, such as the content of a file, and returns what the schema makes of it.
 *
 * @throws PeriodicEvalError for the first wrong field, with its `path`.
 */
export function parseValue<T>(schema: z.ZodType<T>, value: unknown, { code, where, fix }: ErrorPlace): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, value: got, expected } = describeZodIssue(result.error, value);
  throw new PeriodicEvalError({
    code,
    where: path.length === 0 ? where : `${where}: ${pathText(path).replace(/^\./, "")}`,
    path,
    got: abbreviated(quoteValue(got), 80),
    expected,
    fix,
    cause: result.error,
  });
}

/**
 * Parses and checks the JSON content of a file.
 *
 * @throws PeriodicEvalError for what `strictJson` refuses, and for the first wrong field, with its `path`.
 */
export function parseJson<T>(schema: z.ZodType<T>, text: string, place: ErrorPlace): T {
  const parsed = strictJson(text);
  if (parsed.fault === null) return parseValue(schema, parsed.value, place);
  throw new PeriodicEvalError({ ...place, ...parsed.fault });
}
