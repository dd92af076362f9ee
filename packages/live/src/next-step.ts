import type { Progress, TrainerCallback } from "@periodic-eval/core";
import { advance, isAnyCrossed } from "@periodic-eval/core/session";

/**
 * Returns the next step at whose end a callback may request something; null if no later step is known to matter. Callbacks with a
 * schedule are asked at their next threshold, others with a hook at every step. Epochs and seconds are estimated from the steps so
 * far, so the trainer is heard again before the threshold, and at each step from there on.
 */
export function nextStep(callbacks: readonly TrainerCallback[], progress: Progress): number | null {
  const next = Math.min(...callbacks.map((callback) => nextOf(callback, progress)));
  return next === Infinity ? null : next;
}

const stepHooks = ["onStepBegin", "onStepEnd", "onLog", "onEpochBegin", "onEpochEnd"] as const;

function nextOf(callback: TrainerCallback, progress: Progress): number {
  const { triggers } = callback;
  const { step } = progress;
  if (triggers === undefined)
    return stepHooks.some((hook) => callback[hook] !== undefined) ? step + 1 : Infinity;
  if (triggers.length === 0) return Infinity;
  const counts = (unit: string) => triggers.some((rule) => "unit" in rule && rule.unit === unit);
  const isEstimated = counts("epochs") || counts("seconds");
  if (isEstimated && step === 0) return 1;
  const crossesBy = (later: number) =>
    isAnyCrossed(triggers, progress, advance(progress, at(progress, later)));
  const last = progress.maxSteps ?? Number.MAX_SAFE_INTEGER;
  if (step >= last) return Infinity;
  // Without a pace the steps between two messages double: the loop may count whole epochs, or none at all.
  const { epoch, elapsedSeconds } = progress;
  if ((counts("epochs") && epoch === 0) || (counts("seconds") && elapsedSeconds === 0)) return 2 * step;
  if (!crossesBy(last)) return Infinity;
  let [before, after] = [step, last];
  while (after - before > 1) {
    const middle = before + Math.floor((after - before) / 2);
    if (crossesBy(middle)) after = middle;
    else before = middle;
  }
  return isEstimated ? Math.max(step + 1, step + Math.floor((after - step) / 2)) : after;
}

/** The progress at a later step, if epochs and seconds go on as they did. */
function at(progress: Progress, step: number): Progress {
  const pace = (so: number) => (progress.step === 0 ? so : (so * step) / progress.step);
  return { ...progress, step, epoch: pace(progress.epoch), elapsedSeconds: pace(progress.elapsedSeconds) };
}
