import type { Metric, Observation, Row } from "../../contracts/evaluation.ts";
import type { MeasurementWarning, Paired } from "../../contracts/snapshot.ts";
import { compareMeasurements, type EarlierMeasurement } from "../../statistics/compare.ts";
import { formatDelta } from "../../statistics/format.ts";
import { familyAlpha } from "../../statistics/planned-comparisons.ts";
import { rangeOf } from "../../statistics/range.ts";

/** The significance level of warnings. */
const warningAlpha = 0.01;

export interface WarningContext {
  readonly evaluation: string;
  /** Names the random stream of the permutation tests. */
  readonly seed: string;
}

/** Returns the warnings that only the comparison with the baseline shows. */
export function comparisonWarnings(
  metrics: Readonly<Record<string, Metric<Row>>>,
  now: readonly Row[],
  earlier: EarlierMeasurement<Row>,
  paired: Readonly<Record<string, Paired>>,
  context: WarningContext,
): readonly MeasurementWarning[] {
  return Object.entries(metrics).flatMap(([name, metric]) => {
    const comparison = paired[name];
    if (comparison === undefined || comparison.n_pairs === 0) return [];
    const one = { name, metric, now, earlier, comparison, ...context };
    if (metric.options.control === true) return movedControl(one, metrics);
    return metric.options.unknown === undefined ? [] : unknownRows(one, metric.options.unknown);
  });
}

interface Compared extends WarningContext {
  readonly name: string;
  readonly metric: Metric<Row>;
  readonly now: readonly Row[];
  readonly earlier: EarlierMeasurement<Row>;
  readonly comparison: Paired;
}

function movedControl(
  { name, metric, comparison, evaluation }: Compared,
  metrics: Readonly<Record<string, Metric<Row>>>,
): readonly MeasurementWarning[] {
  const { delta, p_value: p } = comparison;
  const [least, most] = rangeOf(metric);
  const smallest = Number.isFinite(most - least) ? (most - least) / 100 : 0;
  if (p === null || delta === null || p >= warningAlpha || Math.abs(delta) < smallest) return [];
  const moved = `${name} moved by ${formatDelta(delta, metric.options.unit ?? "")} since the baseline (${pText(p)})`;
  return [
    {
      kind: "judge_anchors",
      metrics: Object.keys(metrics).filter((one) => metrics[one]!.options.control !== true),
      count: null,
      total: null,
      void: true,
      message: `The grader scores the same fixed answers differently: ${moved}; ${evaluation} cannot be judged.`,
    },
  ];
}

function unknownRows(one: Compared, isUnknown: (row: Row) => boolean): readonly MeasurementWarning[] {
  const { name, metric, now, earlier, comparison, evaluation } = one;
  const isOf = (row: Row) => isUnknown(row) || metric.observe(row) !== null;
  const [rows, rowsThen] = [now.filter(isOf), earlier.rows.filter(isOf)];
  const [count, countThen] = [rows.filter(isUnknown).length, rowsThen.filter(isUnknown).length];
  if (count + countThen === 0) return [];
  const facts = { metrics: [name], count, total: rows.length };
  const shares = `${count} of ${rows.length} answers are incoherent, empty, cut or not graded, ${countThen} of ${rowsThen.length} at the baseline`;
  const counted = (value: 0 | 1) =>
    conclusion(one, (row) => (isUnknown(row) ? certain(value) : metric.observe(row)));
  const verdicts = [comparison.verdict, counted(0).verdict, counted(1).verdict];
  if (comparison.verdict !== null && new Set(verdicts).size > 1) {
    const message = `${shares}: the conclusion about ${name} depends on how they count, so that ${evaluation} cannot be judged.`;
    return [{ kind: "undecided", ...facts, void: true, message }];
  }
  const { p_value: p, delta } = conclusion(one, (row) =>
    isOf(row) ? certain(isUnknown(row) ? 1 : 0) : null,
  );
  if (p === null || p >= warningAlpha || delta === null || delta <= 0) return [];
  const message = `${shares}, which is more than chance (${pText(p)}).`;
  return [{ kind: "incoherent", ...facts, void: false, message }];
}

const pText = (p: number): string => `p = ${Number(p.toPrecision(2))}`;

const certain = (value: 0 | 1): Observation => ({ value, weight: 1 });

/** Compares as the metric was compared, with other observations. */
function conclusion(
  { name, metric, now, earlier, comparison, seed }: Compared,
  observe: Metric<Row>["observe"],
): Paired {
  const { by: _, ...options } = metric.options;
  const alpha = comparison.alpha ?? familyAlpha;
  const changed = { [name]: { ...metric, options, observe } };
  return compareMeasurements(changed, now, earlier, { seed, primary: name, alpha })[name]!;
}
