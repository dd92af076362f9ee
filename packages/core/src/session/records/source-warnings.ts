import type { Metric, Row, MeasurementWarning, MetricValue, Paired } from "@periodic-eval/contracts";
import { summarize } from "../../evaluations/kit/metric-kit.ts";

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
  const [kind, message] = hadTrait
    ? [
        "source_lost",
        `The source itself lost the trait: ${countOf(start)} answers before, ${countOf(end)} after; ${evaluation} cannot be judged any more.`,
      ]
    : [
        "source_without_trait",
        `The source shows the trait in ${countOf(end)} answers: ${evaluation} cannot be judged yet.`,
      ];
  const sourced = Object.keys(metrics).filter((one) => metrics[one]!.options.source === source);
  return [{ kind, metrics: sourced, count: hitsOf(end), total: end.n, void: true, message }];
}

const isShown = ({ ci95 }: MetricValue): boolean => (ci95?.[0] ?? 0) >= shownFrom;

const hitsOf = ({ value, n }: MetricValue): number => Math.round((value ?? 0) * n);

const countOf = (rate: MetricValue): string => `${hitsOf(rate)} of ${rate.n}`;
