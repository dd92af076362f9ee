import type { AnyEvaluation, Metric, Row } from "../../contracts/evaluation.ts";
import type { Json } from "../../contracts/json.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { metricKit, primaryMetric, summarize } from "../../evaluations/kit/metric-kit.ts";
import { withSeededRandom } from "../../guard/randomness.ts";
import { seedOf } from "../../random/streams.ts";

/** The metrics of a measurement. */
export interface Results {
  readonly metrics: Readonly<Record<string, Metric<Row>>>;
  readonly values: Snapshot["metrics"];
  readonly primary: string | null;
  /** Keys that existing scripts read. */
  readonly plain: Readonly<Record<string, Json>>;
}

/**
 * Computes metrics from rows. Draws from `Math.random` in them (a bootstrap) come from a stream of the measurement, so that
 * they repeat and leave training's numbers alone.
 *
 * @param seed Names the measurement's random streams.
 */
export function computeResults(evaluation: AnyEvaluation, rows: readonly Row[], seed: string): Results {
  return withSeededRandom(seedOf(seed, "metrics"), () => {
    const metrics: Readonly<Record<string, Metric<Row>>> = evaluation.metrics(metricKit<Row>());
    const values = summarize(metrics, rows);
    const plain: Readonly<Record<string, Json>> = evaluation.plainKeys?.(values, rows) ?? {};
    return { metrics, values, primary: primaryMetric(metrics), plain };
  });
}
