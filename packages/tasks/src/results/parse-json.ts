import { PeriodicEvalError, type ErrorCode } from "@periodic-eval/core";
import { quoteValue, describeZodIssue } from "@periodic-eval/core/internal";
import type { z } from "zod";

/** How the error of a value that is wrong reads. */
export interface Blame {
  readonly code: ErrorCode;
  /** The file, or what else holds the value. */
  readonly where: string;
  readonly fix: string;
}

/**
 * A value as its schema has it.
 *
 * @throws PeriodicEvalError that names the first field that is wrong.
 */
export function parsed<T>(schema: z.ZodType<T>, value: unknown, { code, where, fix }: Blame): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, value: got, expected } = describeZodIssue(result.error, value);
  const text = quoteValue(got);
  throw new PeriodicEvalError({
    code,
    where: path.length === 0 ? where : `${where}: ${path.join(".")}`,
    got: text.length > 80 ? `${text.slice(0, 79)}…` : text,
    expected,
    fix,
    cause: result.error,
  });
}

/**
 * `parsed`, of the JSON that a file holds.
 *
 * @throws PeriodicEvalError also for what is no JSON.
 */
export function parsedText<T>(schema: z.ZodType<T>, text: string, blame: Blame): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const { code, where, fix } = blame;
    const got = text.trim() === "" ? "an empty file" : "text that is no JSON";
    throw new PeriodicEvalError({ code, where, got, expected: "JSON", fix, cause });
  }
  return parsed(schema, value, blame);
}
