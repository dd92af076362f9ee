import type * as z from "zod";
import type { ValuePath } from "../errors.ts";
import { valueAt } from "./values.ts";

/** The first problem of a value that a schema rejects. */
export interface ZodIssueDescription {
  readonly path: ValuePath;
  /** The wrong value; undefined if it is missing. */
  readonly value: unknown;
  /** A noun phrase that continues "expected". */
  readonly expected: string;
}

/**
 * Describes the first problem of a zod error. For a union it follows the branch that accepts the value's shape; of several, the
 * one for which nothing is missing. If there is no such branch or there are several, `expected` lists all alternatives.
 *
 * @param value The value that the schema rejected.
 */
export function describeZodIssue(
  { issues }: Pick<z.core.$ZodError, "issues">,
  value: unknown,
): ZodIssueDescription {
  const { path, alternatives } = innermost(issues[0]!, value);
  return {
    path,
    value: valueAt(value, path),
    expected: [...new Set(alternatives)].join(" or ") || "another value",
  };
}

/**
 * Follows a union into its only branch that rejects a part of the value instead of the value itself, or into the only one of these
 * for which nothing is missing.
 */
function innermost(
  issue: z.core.$ZodIssue,
  value: unknown,
  before: ValuePath = [],
): { path: ValuePath; alternatives: string[] } {
  const path = [...before, ...(issue.path as ValuePath)];
  if (issue.code === "invalid_union") {
    const ofParts = issue.errors.filter((issues) => issues.every((nested) => nested.path.length > 0));
    const ofGiven = ofParts.filter((issues) =>
      issues.every((nested) => valueAt(value, [...path, ...(nested.path as ValuePath)]) !== undefined),
    );
    const [branch, ...rest] = ofParts.length === 1 ? ofParts : ofGiven;
    if (branch !== undefined && rest.length === 0) return innermost(branch[0]!, value, path);
  }
  return { path, alternatives: alternativesOf(issue) };
}

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

/** Matches the messages that zod writes for a schema without a message. */
const defaultMessage = /^(Invalid|Too |Unrecognized)/;

function alternativesOf(issue: z.core.$ZodIssue): string[] {
  // An `invalid_key` issue carries the message of the record; the issue of the key itself is inside it.
  if (issue.code === "invalid_key") return alternativesOf(issue.issues[0]!);
  if (!defaultMessage.test(issue.message)) return [issue.message.replace(/^expected /, "")];
  switch (issue.code) {
    case "invalid_type":
      return [typeNames[issue.expected] ?? issue.expected];
    case "too_small":
      // zod reports a tuple that is too short as an array below its length; no schema here requires an array of at least 2.
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
    case "not_multiple_of":
      return [`a multiple of ${issue.divisor}`];
    default:
      return [];
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
