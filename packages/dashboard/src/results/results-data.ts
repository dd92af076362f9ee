import type { ResultsMetric, ResultsSummary } from "./summarize-results.ts";

/** Returns the comparison of runs as JSON, with the content of the tables and the page. */
export function resultsData({ runs, reference, tasks, order }: ResultsSummary) {
  const metricsOf = (metrics: readonly ResultsMetric[]) =>
    metrics.map(({ key, higherIsBetter, measured }) => ({
      key,
      higher_is_better: higherIsBetter,
      runs: measured.map((one, at) => ({ name: runs[at]!.name, timestamp: runs[at]!.timestamp, ...one })),
    }));
  return {
    reference: reference === null ? null : runs[reference]!.name,
    order: order.map((at) => runs[at]!.name),
    tasks: tasks.map(({ name, metrics, groups }) => ({
      name,
      metrics: metricsOf(metrics),
      groups: metricsOf(groups),
    })),
  };
}
