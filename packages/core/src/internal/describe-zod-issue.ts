import type { z } from "zod";
import type { ValuePath } from "../errors.ts";

/** The first problem that a schema found in a value. */
export interface ZodIssueDescription {
  readonly path: ValuePath;
  /** The wrong value; undefined where it is missing. */
  readonly value: unknown;
  /** A noun phrase that continues "expected". */
  readonly expected: string;
}

/**
 * Describes the first problem of a zod error. For a union it follows the one branch that accepts the value's shape; where no
 * branch or several do, `expected` lists all alternatives.
 */
export function describeZodIssue(
  { issues }: Pick<z.core.$ZodError, "issues">,
  value: unknown,
): ZodIssueDescription {
  const { path, alternatives } = innermost(issues[0]!);
  return {
    path,
    value: valueAt(value, path),
    expected: [...new Set(alternatives)].join(" or ") || "another value",
  };
}

/** Follows a union into the only branch that rejects something inside the value rather than the value itself. */
function innermost(
  issue: z.core.$ZodIssue,
  before: ValuePath = [],
): { path: ValuePath; alternatives: string[] } {
  const path = [...before, ...(issue.path as ValuePath)];
  if (issue.code === "invalid_union") {
    const [meant, ...others] = issue.errors.filter((branch) => branch.every((one) => one.path.length > 0));
    if (meant !== undefined && others.length === 0) return innermost(meant[0]!, path);
  }
  return { path, alternatives: alternativesOf(issue) };
}

/** Returns the value at `path` inside `value`; undefined where nothing is there. */
export const valueAt = (value: unknown, path: ValuePath): unknown =>
  path.reduce<unknown>(
    (of, key) => (of as Readonly<Record<string | number, unknown>> | null | undefined)?.[key],
    value,
  );

const typeNames: Readonly<Record<string, string>> = {
  int: "an integer",
  number: "a finite number",
  boolean: "true or false",
  string: "a string",
  tuple: "an array",
  array: "an array",
  object: "an object",
  record: "an object",
};

/** Messages that zod writes itself, where a schema has none of its own. */
const defaultMessage = /^(Invalid|Too |Unrecognized)/;

function alternativesOf(issue: z.core.$ZodIssue): string[] {
  // The issue of a wrong key carries the message of the object around it.
  if (issue.code === "invalid_key") return alternativesOf(issue.issues[0]!);
  if (!defaultMessage.test(issue.message)) return [issue.message.replace(/^expected /, "")];
  switch (issue.code) {
    case "invalid_type":
      return [typeNames[issue.expected] ?? issue.expected];
    case "too_small":
      // zod reports a wrong tuple length as `too_small`; no schema here asks for an array of at least 2.
      if (issue.origin === "array" && issue.minimum !== 1) return [`an array of ${issue.minimum}`];
      return [sized(issue.origin, issue.minimum, issue.inclusive ? "or more" : "above")];
    case "too_big":
      return [sized(issue.origin, issue.maximum, issue.inclusive ? "or less" : "below")];
    case "invalid_value":
      return issue.values.map((value) => JSON.stringify(value));
    case "invalid_format":
      return [issue.pattern === undefined ? `a ${issue.format}` : `a string that matches ${issue.pattern}`];
    case "unrecognized_keys":
      return [`an object without ${issue.keys.map((key) => JSON.stringify(key)).join(", ")}`];
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
  if (origin === "string") return isOne ? "a non-empty string" : `a string of ${limit} characters ${side}`;
  if (origin === "array") return isOne ? "a non-empty array" : `an array of ${limit} ${side}`;
  return side.startsWith("or") ? `a number of ${limit} ${side}` : `a number ${side} ${limit}`;
}
