import type {
  Metric,
  Observation,
  Row,
  MeasurementWarning,
  Paired,
  MetricValue,
} from "@periodic-eval/contracts";
import { summarize } from "../../evaluations/kit/metric-kit.ts";
import { compareMeasurements, type EarlierMeasurement } from "../../statistics/compare.ts";
import { formatDelta } from "../../statistics/format.ts";
import { familyAlpha } from "../../statistics/planned-comparisons.ts";
import { warningOfAll } from "./new-snapshot.ts";
import { rangeOf } from "../../statistics/intervals.ts";

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
  const compared = Object.entries(metrics).flatMap(([name, metric]) => {
    const comparison = paired[name];
    if (comparison === undefined || comparison.n_pairs === 0) return [];
    return [{ name, metric, now, earlier, comparison, ...context }];
  });
  const warnings = compared.flatMap((change) => {
    const { control, unknown, source, primary } = change.metric.options;
    if (control === true) return movedControl(change, metrics);
    const ofSource = source !== undefined && primary === true ? sourceWarnings(change, source, metrics) : [];
    return [...ofSource, ...(unknown === undefined ? [] : unknownRows(change, unknown, metrics))];
  });
  // Counted answers say more than the mean of their scores.
  return warnings.length > 0 ? warnings : compared.flatMap((change) => lostCoherence(change, metrics));
}

interface Compared extends WarningContext {
  readonly name: string;
  readonly metric: Metric<Row>;
  readonly now: readonly Row[];
  readonly earlier: EarlierMeasurement<Row>;
  readonly comparison: Paired;
}

/** Whether a metric moved by more than chance, and by at least a part of its range. */
function hasMoved({ metric, comparison: { delta, p_value: p } }: Compared, part: number): boolean {
  const [least, most] = rangeOf(metric);
  const smallest = Number.isFinite(most - least) ? (most - least) * part : 0;
  return p !== null && delta !== null && p < warningAlpha && Math.abs(delta) >= smallest;
}

/** A part of the range: at their end, healthy and harmful trainings moved the mean by up to 8 of 100 points, half-destroyed models by 19 or more. */
const lostPart = 0.15;

function lostCoherence(
  change: Compared,
  metrics: Readonly<Record<string, Metric<Row>>>,
): readonly MeasurementWarning[] {
  const { name, metric, comparison } = change;
  const { delta, p_value: p } = comparison;
  if (metric.options.coherence !== true || !hasMoved(change, lostPart) || delta! >= 0) return [];
  const message = `The answers became less coherent: ${formatDelta(delta, metric.options.unit ?? "")} since the baseline (${pText(p!)}).`;
  const all = measuringNames(metrics).filter((other) => other !== name);
  return [{ ...warningOfAll("incoherent", message, false), metrics: all }];
}

/** The metrics that measure the model, not the grader. */
const measuringNames = (metrics: Readonly<Record<string, Metric<Row>>>): string[] =>
  Object.keys(metrics).filter((name) => metrics[name]!.options.control !== true);

function movedControl(
  change: Compared,
  metrics: Readonly<Record<string, Metric<Row>>>,
): readonly MeasurementWarning[] {
  const { name, metric, comparison, evaluation } = change;
  if (!hasMoved(change, 1 / 100)) return [];
  const { delta, p_value: p } = comparison;
  const moved = `${name} moved by ${formatDelta(delta, metric.options.unit ?? "")} since the baseline (${pText(p!)})`;
  const message = `The grader scores the same fixed answers differently: ${moved}; ${evaluation} cannot be judged.`;
  return [{ ...warningOfAll("judge_anchors", message), metrics: measuringNames(metrics) }];
}

/** The metrics that say better or worse. Counts of faults and the coherence itself stay true whatever the answers mean. */
const judgedOf = (metrics: Readonly<Record<string, Metric<Row>>>): readonly string[] =>
  Object.entries(metrics)
    .filter(
      ([, { options }]) =>
        options.higherIsBetter !== undefined && options.control !== true && options.coherence !== true,
    )
    .map(([name]) => name);

function unknownRows(
  change: Compared,
  isUnknown: (row: Row) => boolean,
  metrics: Readonly<Record<string, Metric<Row>>>,
): readonly MeasurementWarning[] {
  const { name, metric, now, earlier, comparison, evaluation } = change;
  const isOf = (row: Row) => isUnknown(row) || metric.observe(row) !== null;
  const [rows, rowsThen] = [now.filter(isOf), earlier.rows.filter(isOf)];
  const [count, countThen] = [rows.filter(isUnknown).length, rowsThen.filter(isUnknown).length];
  if (count + countThen === 0) return [];
  const facts = { metrics: [name], count, total: rows.length };
  const shares = `${count} of ${rows.length} answers are incoherent, empty, cut or not graded, ${countThen} of ${rowsThen.length} at the baseline`;
  const counted = (value: 0 | 1) =>
    conclusion(change, (row) => (isUnknown(row) ? certain(value) : metric.observe(row)));
  const verdicts = [comparison.verdict, counted(0).verdict, counted(1).verdict];
  if (comparison.verdict !== null && new Set(verdicts).size > 1) {
    const message = `${shares}: the conclusion about ${name} depends on how they count, so that ${evaluation} cannot be judged.`;
    const all = metric.options.primary === true ? [...new Set([name, ...judgedOf(metrics)])] : [name];
    return [{ ...warningOfAll("undecided", message), ...facts, metrics: all }];
  }
  const { p_value: p, delta } = conclusion(change, (row) =>
    isOf(row) ? certain(isUnknown(row) ? 1 : 0) : null,
  );
  if (p === null || p >= warningAlpha || delta === null || delta <= 0) return [];
  const message = `${shares}, which is more than chance (${pText(p)}).`;
  return [{ ...warningOfAll("incoherent", message, false), ...facts }];
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

/** The source shows the trait if the whole 95 % interval of its rate is at or above this share. */
const shownFrom = 0.05;

/** Both measurements of a metric that needs a source. */
export interface SourcedMeasurements {
  readonly name: string;
  readonly metric: Metric<Row>;
  readonly now: readonly Row[];
  readonly earlier: { readonly rows: readonly Row[] };
  readonly comparison: Paired;
  readonly evaluation: string;
}

/**
 * Returns the warning that a metric and those with the same source cannot be judged: the source itself does not show the trait, and
 * the metric did not become worse.
 */
export function sourceWarnings(
  { name, metric, now, earlier, comparison, evaluation }: SourcedMeasurements,
  source: string,
  metrics: Readonly<Record<string, Metric<Row>>>,
): readonly MeasurementWarning[] {
  const measured = { [source]: metrics[source]!, [name]: metric };
  const [ofNow, ofThen] = [summarize(measured, now), summarize(measured, earlier.rows)];
  const [end, start] = [ofNow[source]!, ofThen[source]!];
  if (end.value === null || isShown(end) || comparison.verdict === "worse") return [];
  const hadTrait = isShown(start) || ((start.value ?? 0) > end.value && isShown(ofThen[name]!));
  const [kind, message]: [MeasurementWarning["kind"], string] = hadTrait
    ? [
        "source_lost",
        `The source itself lost the trait: ${countOf(start)} answers before, ${countOf(end)} after; ${evaluation} cannot be judged any more.`,
      ]
    : [
        "source_without_trait",
        `The source shows the trait in ${countOf(end)} answers: ${evaluation} cannot be judged yet.`,
      ];
  const sourced = Object.keys(metrics).filter((name) => metrics[name]!.options.source === source);
  return [{ ...warningOfAll(kind, message), metrics: sourced, count: hitsOf(end), total: end.n }];
}

const isShown = ({ ci95 }: MetricValue): boolean => (ci95?.[0] ?? 0) >= shownFrom;

const hitsOf = ({ value, n }: MetricValue): number => Math.round((value ?? 0) * n);

const countOf = (rate: MetricValue): string => `${hitsOf(rate)} of ${rate.n}`;
