import type { Json } from "@periodic-eval/core";
import { decayStepsOf } from "./schedule.ts";
import type { TrainingConfig } from "./training-config.ts";

/** Options that a resume may change, because they affect neither the data nor the arithmetic of a step. */
const mayChange = [
  "epochs",
  "maxSteps",
  "saveSteps",
  "keepCheckpoints",
  "keepBest",
  "evalSteps",
  "saveAdapterAtFiring",
  "logSteps",
  "onBadRow",
  "onNonFinite",
  "maxSkippedInARow",
] as const;

/** Options that have no effect on `wsd` before its decay begins. */
const decayOptions = ["decaySteps", "decayRatio", "decayType"] as const;

/**
 * Returns the options that must be equal for an exact resume. The length of the phase is among them if learning rates depend
 * on it. Those of `wsd` do so only from the decay on, so that training that stopped earlier can be extended.
 *
 * @param maxSteps Optimizer steps of the phase, from `epochs` or `maxSteps`.
 * @param step Completed optimizer steps.
 */
export function exactConfig(
  config: TrainingConfig,
  maxSteps: number,
  step: number,
): Readonly<Record<string, Json>> {
  const { schedule, warmupRatio } = config;
  const isStable = schedule === "wsd" && step <= maxSteps - decayStepsOf(config, maxSteps);
  const free: readonly string[] = isStable ? [...mayChange, ...decayOptions] : mayChange;
  // An option that is off changes nothing, so it is left out.
  const isOff = (name: string) => name === "activationCheckpointing" && !config.activationCheckpointing;
  const lasting = Object.entries(config).filter(([name]) => !free.includes(name) && !isOff(name));
  const dependsOnLength = (schedule !== "constant" && !isStable) || (warmupRatio ?? 0) > 0;
  return { ...Object.fromEntries(lasting), ...(dependsOnLength && { maxSteps }) };
}
