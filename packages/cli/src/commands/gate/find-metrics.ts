import { PeriodicEvalError } from "@periodic-eval/core";
import { abbreviated, didYouMean, quoteValue } from "@periodic-eval/contracts/options";
import { adapterOffId } from "@periodic-eval/core/session";
import type { PhaseRecord, RunRecord, Series } from "@periodic-eval/contracts";
import { isGroupMetric } from "@periodic-eval/dashboard";

/** A metric that a condition names, in one phase. */
export interface NamedMetric {
  readonly phase: PhaseRecord;
  readonly series: Series;
  /** Null if the name has no metric and no measurement of the evaluation says which one is primary. */
  readonly metric: string | null;
}

/**
 * Returns all metrics that a name matches, in run order: `id` is the primary metric of an evaluation, `id.metric` any metric, in
 * each phase that measures it; `phase/` in front selects a phase.
 *
 * @throws PeriodicEvalError `config` for a name that the run does not have.
 */
export function findMetrics(run: RunRecord, name: string): readonly NamedMetric[] {
  const places = run.phases.flatMap((phase) =>
    phase.series.filter(isGated).map((series) => ({ phase, series, ...metricsOf(run, series.id) })),
  );
  const found = places.flatMap(({ phase, series, metrics, primary }) =>
    [series.id, `${phase.name}/${series.id}`].flatMap((prefix): readonly NamedMetric[] => {
      if (name === prefix) return [{ phase, series, metric: primary }];
      if (!name.startsWith(`${prefix}.`)) return [];
      const written = name.slice(prefix.length + 1);
      // Failed measurements do not say which metrics the evaluation has.
      const isKnown = metrics.length === 0 || metrics.includes(written);
      return isKnown ? [{ phase, series, metric: written }] : [];
    }),
  );
  if (found.length > 0) return found;
  const ids = places.map(({ series }) => series.id);
  const names = places.flatMap(({ series: { id }, metrics }) => metrics.map((metric) => `${id}.${metric}`));
  const known = [...new Set([...ids, ...names])];
  const ofPhases = run.phases.flatMap((phase) => known.map((one) => `${phase.name}/${one}`));
  const suggestion = didYouMean(name, [...known, ...ofPhases]);
  throw new PeriodicEvalError({
    code: "config",
    where: "--fail-on",
    got: quoteValue(name),
    expected: `an evaluation or a metric of the run: ${abbreviated(known.filter((one) => !isGroupMetric(one)).join(", "), 1000)}`,
    fix: suggestion ?? "Use one of these names, with phase/ in front for a single phase.",
  });
}

/** A measurement without the adapter is a baseline: it says nothing about the trained model. */
const isGated = ({ id, on }: Series): boolean => on === "model" || !id.endsWith(adapterOffId(""));

/** Returns what a callback measures in any phase of the run. */
function metricsOf(run: RunRecord, id: string) {
  const all = run.phases.flatMap(({ series }) => series.filter((one) => one.id === id));
  const metrics = all.flatMap(({ points }) => points.flatMap((point) => Object.keys(point.metrics)));
  const primary = all.find(({ primaryMetric }) => primaryMetric !== null)?.primaryMetric ?? null;
  return { metrics: [...new Set(metrics)], primary };
}
