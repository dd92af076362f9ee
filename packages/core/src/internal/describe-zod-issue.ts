import type { z } from "zod";

/** What a schema has to say of a value: where in it, and what it asks for there. */
export interface ToldIssue {
  readonly path: readonly (string | number)[];
  /** What stands there; undefined where nothing does. */
  readonly value: unknown;
  /** In words, as errors go on after "expected". */
  readonly expected: string;
}

/**
 * The first thing that is wrong with a value, in words. Of a union it is the branch that the value was meant for, where its
 * form tells, else all of them.
 */
export function toldIssue({ issues }: Pick<z.core.$ZodError, "issues">, value: unknown): ToldIssue {
  const { path, alternatives } = innermost(issues[0]!);
  return { path, value: at(value, path), expected: inWords(alternatives) };
}

type Path = ToldIssue["path"];

/** Into the only branch of a union that found something within the value, not the value itself, to be wrong. */
function innermost(issue: z.core.$ZodIssue, before: Path = []): { path: Path; alternatives: string[] } {
  const path = [...before, ...(issue.path as Path)];
  if (issue.code === "invalid_union") {
    const [meant, ...others] = issue.errors.filter((branch) => branch.every((one) => one.path.length > 0));
    if (meant !== undefined && others.length === 0) return innermost(meant[0]!, path);
  }
  return { path, alternatives: alternativesOf(issue) };
}

const at = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (of, key) => (of as Readonly<Record<string | number, unknown>> | null | undefined)?.[key],
    value,
  );

const inWords = (alternatives: readonly string[]): string =>
  [...new Set(alternatives)].join(" or ") || "another value";

const typeWords: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a finite number",
  boolean: "true or false",
  string: "a text",
  tuple: "a list",
  array: "a list",
  object: "a map",
  record: "a map",
};

/** As zod words what a schema has no words of its own for. */
const usualMessage = /^(Invalid|Too |Unrecognized)/;

function alternativesOf(issue: z.core.$ZodIssue): string[] {
  // Its message is that of the map around it.
  if (issue.code === "invalid_key") return alternativesOf(issue.issues[0]!);
  if (!usualMessage.test(issue.message)) return [issue.message.replace(/^expected /, "")];
  switch (issue.code) {
    case "invalid_type":
      return [typeWords[issue.expected] ?? issue.expected];
    case "too_small":
      // Of a list of so many (a tuple) zod says no other than of one of at least so many, of which there is none above 1.
      if (issue.origin === "array" && issue.minimum !== 1) return [`a list of ${issue.minimum}`];
      return [sized(issue.origin, issue.minimum, issue.inclusive ? "or more" : "above")];
    case "too_big":
      return [sized(issue.origin, issue.maximum, issue.inclusive ? "or less" : "below")];
    case "invalid_value":
      return issue.values.map((value) => JSON.stringify(value));
    case "invalid_format":
      return [issue.pattern === undefined ? `a ${issue.format}` : `a text that matches ${issue.pattern}`];
    case "unrecognized_keys":
      return [`no ${issue.keys.map((key) => JSON.stringify(key)).join(", ")} in it`];
    case "invalid_union":
      return issue.errors.flatMap((branch) => branch.slice(0, 1).flatMap(alternativesOf));
    default:
      return [issue.message];
  }
}

function sized(
  origin: string,
  limit: number | bigint,
  side: "or more" | "or less" | "above" | "below",
): string {
  const isOne = limit === 1 && side === "or more";
  if (origin === "string")
    return isOne ? "a text that is not empty" : `a text of ${limit} characters ${side}`;
  if (origin === "array") return isOne ? "a list that is not empty" : `a list of ${limit} ${side}`;
  return side.startsWith("or") ? `a number of ${limit} ${side}` : `a number ${side} ${limit}`;
}
