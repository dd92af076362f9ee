import { PeriodicEvalError, type ErrorCode } from "@periodic-eval/core";
import {
  abbreviated,
  describeZodIssue,
  errorMessage,
  isDeeperThan,
  pathText,
  quoteValue,
  repeatedKey,
} from "@periodic-eval/core/internal";
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

/** Deeper values overflow the stack of schemas, which are recursive. */
const maxDepth = 400;

/**
 * Parses and checks the JSON content of a file.
 *
 * @throws PeriodicEvalError for invalid JSON, nesting that is too deep and a key that occurs twice in one object, and for the first wrong field, with its `path`.
 */
export function parseJson<T>(schema: z.ZodType<T>, text: string, place: ErrorPlace): T {
  const { code, where, fix } = place;
  const failed = (got: string, expected: string, cause?: unknown) =>
    new PeriodicEvalError({ code, where, got, expected, fix, cause });
  if (isDeeperThan(maxDepth, text)) throw failed("deeper nesting", `at most ${maxDepth} levels`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const got = text.trim() === "" ? "an empty file" : `invalid JSON (${errorMessage(cause)})`;
    throw failed(got, "JSON", cause);
  }
  const key = repeatedKey(text);
  if (key !== null)
    throw failed(`the key ${abbreviated(quoteValue(key))} twice in one object`, "keys that differ");
  return parseValue(schema, value, place);
}
