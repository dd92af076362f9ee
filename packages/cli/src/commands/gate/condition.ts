import { InvalidArgumentError } from "commander";

/** A condition of `--fail-on`. A run fails the gate if the condition is true. */
export interface Condition {
  /** As the user wrote it. */
  readonly text: string;
  /** `id`, `id.metric`, `phase/id` or `phase/id.metric`. */
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

const verdictForm = /^(.+)\s(better|worse|changed)$/;
// The name is greedy, because names of groups can hold operators.
const valueForm = /^(.+)(>=|<=|>|<)\s*([-−+]?(?:\d+\.?\d*|\.\d+))(?:e([-+]?\d{1,3}))?(?![\d.])(.*)$/;

/**
 * Parses `capability worse` or `alignment.misaligned > 5 %`.
 *
 * @throws InvalidArgumentError for anything else, which commander reports as wrong usage.
 */
export function parseCondition(text: string): Condition {
  const trimmed = text.trim();
  const [, subject = "", verdict] = verdictForm.exec(trimmed) ?? [];
  if (isVerdict(verdict)) return { text: trimmed, name: subject.trim(), test: { kind: "verdict", verdict } };
  const [, name = "", operator, mantissa = "", exponent = "0", unit = ""] = valueForm.exec(trimmed) ?? [];
  const limit = { mantissa: mantissa.replace("−", "-"), exponent: Number(exponent), unit: unit.trim() };
  const isFinite = Number.isFinite(Number(`${limit.mantissa}e${exponent}`));
  if (name.trim() === "" || !isOperator(operator) || !isFinite)
    throw new InvalidArgumentError(
      "Expected NAME better, NAME worse or NAME changed, or a limit such as NAME.METRIC > 5 %, with >, <, >= or <=.",
    );
  return { text: trimmed, name: name.trim(), test: { kind: "value", operator, ...limit } };
}

/** A largest detectable change at which `no evidence` passes. */
export interface DetectableChange {
  readonly value: number;
  /** As a change is written: `points` for shares, `nats` …; empty for a number without a unit. */
  readonly unit: string;
}

/**
 * Parses `10 points` or `0.5 nats`.
 *
 * @throws InvalidArgumentError for anything else, which commander reports as wrong usage.
 */
export function parseDetectable(text: string): DetectableChange {
  const [, value = "", unit = ""] = /^(\d+\.?\d*|\.\d+)\s*(.*)$/.exec(text.trim()) ?? [];
  if (value === "" || unit === "%")
    throw new InvalidArgumentError("Expected a change with its unit, such as 10 points or 0.5 nats.");
  return { value: Number(value), unit };
}

const isVerdict = (word: string | undefined): word is VerdictTest["verdict"] =>
  word === "better" || word === "worse" || word === "changed";

const isOperator = (text: string | undefined): text is ValueTest["operator"] =>
  text === ">" || text === "<" || text === ">=" || text === "<=";
