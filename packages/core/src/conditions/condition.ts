import { quoteValue } from "@periodic-eval/contracts/options";
import { unitText } from "../statistics/format.ts";

/**
 * A condition on a metric, as gates, `stopWhen` and `escalate` read it: `alignment worse`, `capability.accuracy < 40 %`.
 */
export interface Condition {
  /** The condition in one spelling, however spaces and numbers were written: `capability.accuracy < 40 %`. */
  readonly text: string;
  /** `id`, `id.metric`, and for gates also `phase/id` or `phase/id.metric`. */
  readonly name: string;
  readonly test: VerdictTest | ValueTest;
}

/** `changed`: any verdict that is evidence of a change, so also `better` and `worse`. */
export interface VerdictTest {
  readonly kind: "verdict";
  readonly verdict: "better" | "worse" | "changed";
}

export interface ValueTest {
  readonly kind: "value";
  readonly operator: ">" | "<" | ">=" | "<=";
  /** The digits as written, with `-` as the sign. */
  readonly mantissa: string;
  readonly exponent: number;
  /** As written; empty if none was. */
  readonly unit: string;
}

/** The forms of a condition, for errors. */
export const conditionForms =
  "NAME better, NAME worse or NAME changed, or a limit such as NAME.METRIC > 5 %, with >, <, >= or <=";

const verdictForm = /^(.+)\s(better|worse|changed)$/;
// The name is greedy, because names of groups can hold operators.
const valueForm = /^(.+)(>=|<=|>|<)\s*([-−+]?(?:\d+\.?\d*|\.\d+))(?:e([-+]?\d{1,3}))?(?![\d.])(.*)$/;

/** Parses `capability worse` or `alignment.misaligned > 5 %`; null for anything else. */
export function readCondition(written: string): Condition | null {
  const trimmed = written.trim();
  const [, subject = "", verdict] = verdictForm.exec(trimmed) ?? [];
  if (isVerdict(verdict)) {
    const name = subject.trim();
    return { text: `${name} ${verdict}`, name, test: { kind: "verdict", verdict } };
  }
  const [, before = "", operator, digits = "", exponent = "0", after = ""] = valueForm.exec(trimmed) ?? [];
  const [name, mantissa, unit] = [before.trim(), digits.replace("−", "-"), after.trim()];
  const limit = Number(`${mantissa}e${exponent}`);
  if (name === "" || !isOperator(operator) || !Number.isFinite(limit)) return null;
  return {
    text: `${name} ${operator} ${limit} ${unit}`.trim(),
    name,
    test: { kind: "value", operator, mantissa, exponent: Number(exponent), unit },
  };
}

/** Returns a limit in the unit of snapshots, in which a share is a part of 1. */
export function limitIn(metricUnit: string, { mantissa, exponent }: ValueTest): number {
  // Shifts the decimal point instead of dividing: 0.1 % is the nearest number to 0.001.
  return Number(`${mantissa}e${metricUnit === "share" ? exponent - 2 : exponent}`);
}

/**
 * Returns a limit of the condition `name` on a metric, in the unit of snapshots.
 *
 * @param refuse Makes the error for a limit that is not in the metric's unit; `right` is the condition with it.
 */
export function limitOf(
  name: string,
  test: ValueTest,
  metricUnit: string,
  refuse: (got: string, right: string) => Error,
): number {
  const { operator, mantissa, unit } = test;
  if (unit === unitText(metricUnit)) return limitIn(metricUnit, test);
  const got = unit === "" ? "a limit without a unit" : `the unit ${quoteValue(unit)}`;
  throw refuse(got, `${name} ${operator} ${mantissa} ${unitText(metricUnit)}`.trim());
}

const isVerdict = (word: string | undefined): word is VerdictTest["verdict"] =>
  word === "better" || word === "worse" || word === "changed";

const isOperator = (text: string | undefined): text is ValueTest["operator"] =>
  text === ">" || text === "<" || text === ">=" || text === "<=";
