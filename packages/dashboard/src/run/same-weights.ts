import type { RunRecord } from "@periodic-eval/contracts";
import type { MetricCurve } from "../charts/metric-curves.ts";

/**
 * Returns a sentence if two phases show different values of the same weights and questions: at the end of one, and at the start of the
 * next. Null if none do. A reader would otherwise look for what changed between the phases.
 */
export function sameWeightsNote(
  { phases }: RunRecord,
  { callback, measurements }: MetricCurve,
): string | null {
  const pairs = phases.slice(1).flatMap((next, index) => {
    const [end, start] = [
      measurements.findLast(({ phaseIndex }) => phaseIndex === index),
      measurements.find(({ phaseIndex }) => phaseIndex === index + 1),
    ];
    if (!end?.isAtEnd || !start?.isAtStart || end.value === null || start.value === null) return [];
    const [before, after] = [end, start].map(({ phaseIndex, step }) =>
      phases[phaseIndex]!.snapshots.find((one) => one.id === callback && one.step === step),
    );
    const isSame =
      before?.weights != null &&
      before.weights === after?.weights &&
      before.provenance.hash === after.provenance.hash;
    return isSame && end.value !== start.value ? [`${phases[index]!.name} and ${next.name}`] : [];
  });
  if (pairs.length === 0) return null;
  const where = pairs.map((pair) => `between ${pair}`).join(", ");
  return `The weights are the same at both measurements ${where}. Their answers were sampled twice, so the values differ by chance.`;
}
