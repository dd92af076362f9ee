import type {
  AnyEvaluation,
  CallbackCondition,
  Row,
  Snapshot,
  TrainerCallback,
} from "@periodic-eval/contracts";
import { abbreviated, configError, didYouMean, quoteValue } from "@periodic-eval/contracts/options";
import { metricKit, primaryMetric } from "../evaluations/kit/metric-kit.ts";
import { conditionForms, limitOf, readCondition, type Condition } from "./condition.ts";

/** A condition on a metric that a callback measures. */
export interface NamedCondition extends Condition, CallbackCondition {
  /** The condition with the metric's name, also if it is the primary one: `capability.accuracy worse`. */
  readonly fullText: string;
}

/**
 * Reads a condition on what callbacks measure.
 *
 * @param location Where it is written, for errors.
 * @throws PeriodicEvalError `config` for a condition that cannot be read, or that the metrics cannot have.
 */
export function findMetric(
  text: string,
  callbacks: readonly TrainerCallback[],
  location: CallbackCondition["location"],
): NamedCondition {
  const refuse = (got: string, expected: string, fix: string) =>
    configError({ ...location, got, expected, fix });
  const condition = readCondition(text);
  if (condition === null) throw refuse(quoteValue(text), conditionForms, "Correct the condition.");
  const { name, test } = condition;
  const measured = callbacks.flatMap(measuredBy);
  const source = measured
    .filter(({ id }) => name === id || name.startsWith(`${id}.`))
    .toSorted((a, b) => b.id.length - a.id.length)[0];
  const known = measured.map(({ id }) => id);
  if (source === undefined)
    throw refuse(
      quoteValue(name),
      `an evaluation that this phase measures (${abbreviated(known.join(", "), 300)}), alone or with a metric`,
      didYouMean(name, known) ?? "Name one of them, or measure it.",
    );
  const { id, evaluation } = source;
  const metrics = evaluation.metrics(metricKit<Row>() as never);
  const metric = name === id ? null : name.slice(id.length + 1);
  const metricName = metric ?? primaryMetric(metrics);
  // The groups of a metric are known only once there are rows: see `groupFault`.
  const metricWithGroups = metrics[metricName?.split("/")[0] ?? ""];
  const namedMetric =
    metrics[metricName ?? ""] ?? (metricWithGroups?.options.by === undefined ? undefined : metricWithGroups);
  if (namedMetric === undefined && metricWithGroups !== undefined)
    throw refuse(
      quoteValue(name),
      `a metric with groups, and ${metricName!.split("/")[0]} of ${id} has none`,
      `Write "${id}.${metricName!.split("/")[0]}".`,
    );
  if (namedMetric === undefined)
    throw refuse(
      quoteValue(name),
      `a metric of ${id}: ${abbreviated(Object.keys(metrics).join(", "), 300)}`,
      didYouMean(metric ?? "", Object.keys(metrics)) ?? "Name one of them.",
    );
  if (test.kind === "verdict" && !source.hasStart)
    throw refuse(
      "a verdict on what another result requests, which has no start to compare with",
      quoteValue(`${name} > 20 %`),
      "Set a limit.",
    );
  const { unit = namedMetric.kind === "rate" ? "share" : "", higherIsBetter } = namedMetric.options;
  if (test.kind === "verdict" && test.verdict !== "changed" && higherIsBetter === undefined)
    throw refuse(
      "a metric of which neither more nor less is better",
      quoteValue(`${name} changed`),
      "Correct the condition.",
    );
  if (test.kind === "value") {
    const limit = limitOf(name, test, unit, (got, right) =>
      refuse(got, quoteValue(right), "Correct the condition."),
    );
    if (unit === "share" && (limit <= 0 || limit >= 1))
      throw refuse(
        `a limit of ${test.mantissa} %`,
        "a limit between 0 % and 100 %",
        "Correct the condition.",
      );
  }
  const fullText = `${id}.${metricName}${condition.text.slice(name.length)}`;
  return { ...condition, id, metric, location, fullText };
}

/**
 * Returns why a condition on a group of rows, such as `accuracy/pirate`, cannot be tested on a measurement without this group, as parts
 * of an error; null if it has the metric.
 */
export function groupFault({ id, metric }: CallbackCondition, { metrics }: Snapshot) {
  const slash = metric?.indexOf("/") ?? -1;
  if (metric === null || slash === -1 || Object.hasOwn(metrics, metric)) return null;
  const start = metric.slice(0, slash + 1);
  const known = Object.keys(metrics).filter((key) => key.startsWith(start));
  const groups = known.map((key) => key.slice(start.length)).join(", ");
  const name = `${id}.${metric}`;
  const metricName = `${id}.${metric.slice(0, slash)}`;
  const got = `${quoteValue(name)}, which cannot be tested`;
  if (known.length === 0) {
    const expected = `a metric with groups, and the rows of ${metricName} are in no group`;
    return { got, expected, fix: `Write ${quoteValue(metricName)}.` };
  }
  return {
    got,
    expected: `a group of ${metricName}: ${abbreviated(groups, 300)}`,
    fix:
      didYouMean(
        name,
        known.map((key) => `${id}.${key}`),
      ) ?? "Name one of them.",
  };
}

/** Returns what a callback measures, by the id of its snapshots. */
export function measuredBy({ id, asks = [], triggers }: TrainerCallback) {
  const idOf = (evaluation: AnyEvaluation, at: number) =>
    triggers === undefined || at > 0 ? `${id}-${evaluation.name}` : id;
  return asks.map((evaluation, at) => ({
    id: idOf(evaluation, at),
    evaluation,
    hasStart: triggers !== undefined,
  }));
}
