// The effects of a measurement's warnings on its metrics. Pages, terminals and gates ask only these functions.
import type { MeasurementWarning, Paired, Snapshot } from "@periodic-eval/contracts";

type Warned = { readonly warnings: readonly MeasurementWarning[] };

/** Returns the warnings that concern a metric or its group: a warning on `leakage_rate` concerns `leakage_rate/doctor`. */
export const warningsOf = ({ warnings }: Warned, metric: string): readonly MeasurementWarning[] =>
  warnings.filter(
    ({ metrics }) => metrics?.some((name) => metric === name || metric.startsWith(`${name}/`)) ?? true,
  );

/** Whether a metric cannot be judged. It then has a value, but no verdict. */
export const isVoid = (snapshot: Warned, metric: string): boolean => voidReason(snapshot, metric) !== null;

/** Returns the sentence that says why a metric cannot be judged; null if it can. */
export const voidReason = (snapshot: Warned, metric: string): string | null =>
  warningsOf(snapshot, metric).find((warning) => warning.void)?.message ?? null;

/** The kinds that say nothing beside a reason before them: any other, or an earlier one of these. */
const ranks = ["source_lost", "source_without_trait", "undecided"];

/**
 * Returns the snapshot with further warnings, and without verdicts of the metrics that cannot be judged. That a conclusion depends on the
 * answers without a grade, or that a source has no trait, says nothing new of metrics that cannot be judged.
 */
export function addWarnings(snapshot: Snapshot, found: readonly MeasurementWarning[]): Snapshot {
  const all = [...snapshot.warnings, ...found];
  const added = found.filter(({ kind, metrics }) => {
    const rank = ranks.indexOf(kind);
    const causes = { warnings: all.filter((other) => ranks.indexOf(other.kind) < rank) };
    return rank === -1 || metrics?.every((name) => isVoid(causes, name)) !== true;
  });
  if (added.length === 0) return snapshot;
  const warnings = [...snapshot.warnings, ...added];
  const judgeable = (paired: Record<string, Paired> | null) =>
    paired &&
    Object.fromEntries(
      Object.entries(paired).map(([metric, comparison]) => [
        metric,
        isVoid({ warnings }, metric) ? { ...comparison, verdict: null } : comparison,
      ]),
    );
  const { baseline, previous } = snapshot.paired;
  return { ...snapshot, warnings, paired: { baseline: judgeable(baseline), previous: judgeable(previous) } };
}
