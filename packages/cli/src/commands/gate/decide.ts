import { quoteValue } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import {
  conditionForms,
  limitOf,
  readCondition,
  type Condition,
  type ValueTest,
  type VerdictTest,
} from "@periodic-eval/core/session";
import { unitText, wilson, type Interval } from "@periodic-eval/core/statistics";
import {
  formatDelta,
  formatInterval,
  formatValue,
  judgementOf,
  partOfRange,
  scaleOf,
  type MetricSummary,
} from "@periodic-eval/dashboard";
import { InvalidArgumentError } from "commander";

/** Why a condition is inconclusive, and what to do. */
export interface Inconclusive {
  readonly reason: string;
  readonly fix: string;
}

/** A 95 % interval, and whether it is for this run's questions or for questions like these. */
export interface DecidingInterval {
  readonly ci95: Interval;
  readonly estimand: "given_questions" | "over_questions";
}

export interface Decision {
  /** `failed`: the condition is true. */
  readonly outcome: "passed" | "failed" | "inconclusive";
  readonly interval: DecidingInterval | null;
  /** Null unless the outcome is `inconclusive`. */
  readonly inconclusive: Inconclusive | null;
}

/**
 * Decides a condition on a metric at the end of a phase. A limit decides only by the whole 95 % interval; `no evidence` only if a
 * change that matters would have been detected.
 *
 * @throws PeriodicEvalError `config` for a condition that the metric cannot have.
 */
export function decide(
  condition: Condition,
  summary: MetricSummary,
  detectable: readonly DetectableChange[] = [],
): Decision {
  const { test } = condition;
  if (test.kind === "value") return decideLimit(condition, test, summary);
  if (test.verdict !== "changed" && summary.higherIsBetter === null)
    throw wrongCondition(
      condition,
      `a metric of which neither more nor less is better`,
      `${condition.name} changed`,
    );
  return decideVerdict(test, summary, detectable);
}

const decided = (isTrue: boolean, interval: DecidingInterval | null = null): Decision => ({
  outcome: isTrue ? "failed" : "passed",
  interval,
  inconclusive: null,
});

const undecided = (reason: string, fix: string, interval: DecidingInterval | null = null): Decision => ({
  outcome: "inconclusive",
  interval,
  inconclusive: { reason, fix },
});

/** `no evidence` passes if a change of a fifth of the range would have been detected: 20 points of a share. */
const detectablePart = 0.2;

const lookAtAnswers = "Look at the answers on the page: the run has to be measured again without the cause.";
const useValue = "Use a condition on the value.";
const measureMore = "Measure more questions or samples";

function decideVerdict(
  { verdict }: VerdictTest,
  summary: MetricSummary,
  detectable: readonly DetectableChange[],
): Decision {
  const { metric, end, unit, change, notPaired, notTested, voidReason, startVoidReason } = summary;
  const written = detectable.find((threshold) => threshold.unit === unitOfChange(unit));
  const limit = written === undefined ? partOfRange(summary, detectablePart) : written.value / scaleOf(unit);
  const judgement = judgementOf(summary, limit);
  switch (judgement) {
    case "void":
      return undecided(voidReason!, lookAtAnswers);
    case "untested":
      if (change === null && notPaired !== null)
        return undecided(
          `the last measurement, at step ${end.step}, is not compared: the start has ${notPaired}`,
          "Measure start and end with the same setup, or use a condition on the value.",
        );
      if (startVoidReason !== null) return undecided(`at the start: ${startVoidReason}`, useValue);
      return undecided(
        `the last measurement, at step ${end.step}, has no verdict on ${metric}${notTested === null ? "" : `: ${notTested}`}`,
        change === null
          ? "A verdict needs a baseline: measure at the start too, with the same questions, or use a condition on the value."
          : `${change.n_pairs === 0 ? "Measure start and end with the same questions" : measureMore}, or use a condition on the value.`,
      );
    case "equal":
      return undecided(
        "every row has the same value before and after: no detectable change is known",
        useValue,
      );
    case "too few":
      return undecided(tooFew(change!.minimal_detectable_change, limit, unit), `${measureMore}.`);
    case "no change":
      return verdict === "worse" && !canGetWorse(summary)
        ? undecided(
            `no evidence, but the baseline of ${formatValue(baselineOf(summary), unit)} cannot get worse by what would have been detected`,
            "Use a condition on the value, or on another metric.",
          )
        : decided(false);
    default:
      return decided(verdict === "changed" || verdict === judgement);
  }
}

const baselineOf = ({ end, change }: MetricSummary): number => end.value! - change!.delta!;

/** Whether the baseline leaves room for the change that would have been detected: accuracy of 2 % cannot fall by 10 points. */
function canGetWorse(summary: MetricSummary): boolean {
  const { range, higherIsBetter, change } = summary;
  const room = higherIsBetter! ? baselineOf(summary) - range[0] : range[1] - baselineOf(summary);
  return room >= Math.abs(change!.minimal_detectable_change!);
}

function tooFew(detectable: number | null, limit: number, unit: string): string {
  const change = (value: number) => formatDelta(Math.abs(value), unit).replace("+", "±");
  if (detectable === null) return "no evidence, but so few rows cannot show a change";
  return `no evidence, but only changes beyond ${change(detectable)} would have been detected, and ${change(limit)} is the limit`;
}

const compare: Readonly<Record<ValueTest["operator"], (value: number, limit: number) => boolean>> = {
  ">": (value, limit) => value > limit,
  "<": (value, limit) => value < limit,
  ">=": (value, limit) => value >= limit,
  "<=": (value, limit) => value <= limit,
};

function decideLimit(condition: Condition, test: ValueTest, summary: MetricSummary): Decision {
  const { unit, voidReason } = summary;
  const limit = limitOf(condition.name, test, unit, (got, right) => wrongCondition(condition, got, right));
  if (voidReason !== null) return undecided(voidReason, lookAtAnswers);
  const interval = decidingInterval(summary);
  if (interval === null)
    return undecided("the value has no interval", `${measureMore}, or use a condition on the verdict.`);
  const ends = interval.ci95.map((end) => compare[test.operator](end, limit));
  if (ends[0] === ends[1]) return decided(ends[0]!, interval);
  const shown = `${formatInterval(interval.ci95, unit)} of ${formatValue(summary.end.value, unit)}`;
  return undecided(
    `the limit ${formatValue(limit, unit)} is inside of the interval ${shown}, n = ${summary.end.n}`,
    `${measureMore}, or set a limit outside of the interval.`,
    interval,
  );
}

/**
 * Returns the interval for this run's questions if the rows of the value are known: Wilson's for a share. Otherwise the interval of
 * the snapshot, which may be the wider one for questions like these.
 */
function decidingInterval({ unit, range, end }: MetricSummary): DecidingInterval | null {
  const { value, n, ci95, estimand } = end;
  const isShare = unit === "share" && range[0] !== -1 && value !== null && value >= 0 && value <= 1;
  const ofQuestions = isShare && n !== null ? wilson(value * n, n) : null;
  if (isShare && ofQuestions !== null) {
    // Rounding may not separate an interval from its value: 0 of 40 is not above 0.
    const [low, high] = ofQuestions;
    return { ci95: [Math.min(low, value), Math.max(high, value)], estimand: "given_questions" };
  }
  if (ci95 === null || estimand === null) return null;
  const [least, most] = range;
  const isBounded = Number.isFinite(most - least);
  if (ci95[0] !== ci95[1] || value === null || n === null || n < 2 || !isBounded) return { ci95, estimand };
  // Equal values show no spread. The share of values that could differ has the exact interval (Clopper and Pearson) of 0 of n.
  const share = 1 - 0.025 ** (1 / n);
  return {
    ci95: [value - share * (value - least), value + share * (most - value)],
    estimand: "given_questions",
  };
}

/** Returns the unit of a metric's change, as it is written: `points` for shares. */
const unitOfChange = (unit: string): string => (unit === "share" ? "points" : unitText(unit));

export const wrongCondition = ({ text }: Condition, got: string, right: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "config",
    where: `--fail-on ${quoteValue(text)}`,
    got,
    expected: quoteValue(right),
    fix: "Correct the condition.",
  });

/**
 * Reads a condition of `--fail-on`. A run fails the gate if the condition is true.
 *
 * @throws InvalidArgumentError for anything else, which commander reports as wrong usage.
 */
export function parseCondition(text: string): Condition {
  const condition = readCondition(text);
  if (condition === null) throw new InvalidArgumentError(`Expected ${conditionForms}.`);
  return condition;
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
