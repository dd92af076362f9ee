import type { MeasurementWarning, Snapshot } from "@periodic-eval/contracts";

/**
 * Returns a warning if every measurement of a phase before this one had the same weights at an earlier step: the measured model is
 * not the one that is trained, or training changes none of its weights. Null if the weights are unknown, and for a base.
 *
 * @param before The snapshots of the phase that belong to this training.
 */
export function unchangedWeights(
  { weights, step, on }: Pick<Snapshot, "weights" | "step" | "on">,
  before: readonly Snapshot[],
): MeasurementWarning | null {
  const measured = before.filter((one) => one.on === "model" && one.weights !== null && one.step < step);
  const first = measured[0];
  if (weights === null || on === "base" || first === undefined) return null;
  if (measured.some((one) => one.weights !== weights)) return null;
  const since = Math.min(...measured.map((one) => one.step));
  return {
    kind: "unchanged_weights",
    metrics: null,
    count: null,
    total: null,
    void: true,
    message: `Training has changed no weight of the measured model from step ${since} to step ${step}: nothing can be said about the training. Measure the model that is trained, with its adapter, and train weights that are not frozen.`,
  };
}
