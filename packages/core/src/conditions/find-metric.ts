import type { AnyEvaluation, Row, Snapshot, TrainerCallback, ValuePath } from "@periodic-eval/contracts";
import { abbreviated, configError, didYouMean, quoteValue } from "@periodic-eval/contracts/options";
import { metricKit, primaryMetric } from "../evaluations/kit/metric-kit.ts";
import { conditionForms, limitOf, readCondition, type Condition } from "./condition.ts";

/** A condition on a metric that a callback measures. */
export interface NamedCondition extends Condition {
  readonly id: string;
  /** Null: the primary metric. */
  readonly metric: string | null;
}

/**
 * Reads a condition on what callbacks measure.
 *
 * @param place Where it is written, for errors.
 * @throws PeriodicEvalError `config` for a condition that cannot be read, or that the metrics cannot have.
 */
export function findMetric(
  text: string,
  callbacks: readonly TrainerCallback[],
  place: { readonly where: string; readonly path: ValuePath },
): NamedCondition {
  const refuse = (got: string, expected: string, fix: string) =>
    configError({ ...place, got, expected, fix });
  const condition = readCondition(text);
  if (condition === null) throw refuse(quoteValue(text), conditionForms, "Correct the condition.");
  const { name, test } = condition;
  const measured = callbacks.flatMap(measuredBy);
  const found = measured
    .filter(({ id }) => name === id || name.startsWith(`${id}.`))
    .toSorted((one, other) => other.id.length - one.id.length)[0];
  const known = measured.map(({ id }) => id);
  if (found === undefined)
    throw refuse(
      quoteValue(name),
      `an evaluation that this phase measures (${abbreviated(known.join(", "), 300)}), alone or with a metric`,
      didYouMean(name, known) ?? "Name one of them, or measure it.",
    );
  const { id, evaluation } = found;
  const metrics = evaluation.metrics(metricKit<Row>() as never);
  const metric = name === id ? null : name.slice(id.length + 1);
  const whole = metric ?? primaryMetric(metrics);
  // The groups of a metric are known only once there are rows: see `groupFault`.
  const ofGroups = metrics[whole?.split("/")[0] ?? ""];
  const one = metrics[whole ?? ""] ?? (ofGroups?.options.by === undefined ? undefined : ofGroups);
  if (one === undefined && ofGroups !== undefined)
    throw refuse(
      quoteValue(name),
      `a metric with groups, and ${whole!.split("/")[0]} of ${id} has none`,
      `Write "${id}.${whole!.split("/")[0]}".`,
    );
  if (one === undefined)
    throw refuse(
      quoteValue(name),
      `a metric of ${id}: ${abbreviated(Object.keys(metrics).join(", "), 300)}`,
      didYouMean(metric ?? "", Object.keys(metrics)) ?? "Name one of them.",
    );
  if (test.kind === "verdict" && !found.hasStart)
    throw refuse(
      "a verdict on what another result requests, which has no start to compare with",
      quoteValue(`${name} > 20 %`),
      "Set a limit.",
    );
  const { unit = one.kind === "rate" ? "share" : "", higherIsBetter } = one.options;
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
  return { ...condition, id, metric };
}

/**
 * Returns why a condition on a group of rows, such as `accuracy/pirate`, cannot be tested on a measurement without this group, as parts
 * of an error; null if it has the metric.
 */
export function groupFault({ id, metric }: NamedCondition, { metrics }: Snapshot) {
  const slash = metric?.indexOf("/") ?? -1;
  if (metric === null || slash === -1 || Object.hasOwn(metrics, metric)) return null;
  const start = metric.slice(0, slash + 1);
  const known = Object.keys(metrics).filter((one) => one.startsWith(start));
  const groups = known.map((one) => one.slice(start.length)).join(", ");
  const name = `${id}.${metric}`;
  return {
    got: `${quoteValue(name)}, which cannot be tested`,
    expected: `a group of ${id}.${metric.slice(0, slash)}: ${abbreviated(groups, 300) || "it has none"}`,
    fix:
      didYouMean(
        name,
        known.map((one) => `${id}.${one}`),
      ) ?? "Name one of them.",
  };
}

/** Returns what a callback measures, by the id of its snapshots. */
function measuredBy({ id, asks = [], triggers }: TrainerCallback) {
  const idOf = (evaluation: AnyEvaluation, at: number) =>
    triggers === undefined || at > 0 ? `${id}-${evaluation.name}` : id;
  return asks.map((evaluation, at) => ({
    id: idOf(evaluation, at),
    evaluation,
    hasStart: triggers !== undefined,
  }));
}
