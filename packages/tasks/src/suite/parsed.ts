import { PeriodicEvalError, shown, type ErrorCode } from "@periodic-eval/core";
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
  const issue = result.error.issues[0]!;
  const { path } = issue;
  const got = path.reduce<unknown>(
    (at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key],
    value,
  );
  const text = shown(got);
  throw new PeriodicEvalError({
    code,
    where: path.length === 0 ? where : `${where}: ${path.map(String).join(".")}`,
    got: text.length > 80 ? `${text.slice(0, 79)}…` : text,
    expected: wordsOf(issue),
    fix,
    cause: result.error,
  });
}

/** What a schema says of itself, else what zod's code says in our words. */
function wordsOf(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_key") return wordsOf(issue.issues[0]!);
  if (!ofZod.test(issue.message)) return issue.message;
  if (issue.code === "unrecognized_keys") return `no key ${issue.keys.map((key) => shown(key)).join(", ")}`;
  if (issue.code === "invalid_value") return issue.values.map((value) => shown(value)).join(" or ");
  return issue.code === "invalid_type" ? (kinds[issue.expected] ?? issue.expected) : "JSON of another form";
}

/** How the messages begin that zod writes where a schema has none of its own. */
const ofZod = /^(?:Invalid|Too|Unrecognized)\b/;

const kinds: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  null: "null",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a text",
  tuple: "a list",
};

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
