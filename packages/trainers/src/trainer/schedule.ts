import { configError } from "@periodic-eval/contracts/options";
import { learningRates, type LearningRate } from "../optimizer/learning-rate.ts";
import type { TrainingConfig } from "./training-config.ts";

/** Returns the optimizer steps of a phase. */
export const phaseSteps = ({ maxSteps, epochs }: TrainingConfig, stepsPerEpoch: number): number =>
  maxSteps ?? Math.ceil((epochs ?? 1) * stepsPerEpoch);

/** Returns the steps over which `wsd` falls to 0. */
export const decayStepsOf = ({ decaySteps, decayRatio }: TrainingConfig, maxSteps: number): number =>
  decaySteps ?? Math.ceil((decayRatio ?? 0) * maxSteps);

/**
 * Returns the learning rates of a configuration.
 *
 * @param where Names the configuration in errors: `SFT config`.
 * @param maxSteps Optimizer steps of the phase.
 * @throws PeriodicEvalError `config` if warm-up and decay are longer than the phase.
 */
export function scheduleOf(where: string, config: TrainingConfig, maxSteps: number): LearningRate {
  const { learningRate: peak, schedule, decayType } = config;
  const warmupSteps = config.warmupSteps ?? Math.ceil((config.warmupRatio ?? 0) * maxSteps);
  const decaySteps = decayStepsOf(config, maxSteps);
  if (warmupSteps > maxSteps || (schedule === "wsd" && warmupSteps + decaySteps > maxSteps)) {
    const decay = schedule === "wsd" ? ` and ${decaySteps} of decay` : "";
    throw configError({
      where,
      path: [schedule === "wsd" ? "schedule" : "warmupSteps"],
      got: `${warmupSteps} steps of warm-up${decay}`,
      expected: `at most the ${maxSteps} steps of the phase`,
      fix: `Shorten warm-up${schedule === "wsd" ? " or decay" : ""}, or train for more steps.`,
    });
  }
  return learningRates[schedule]({ peak, maxSteps, warmupSteps, decaySteps, decayType });
}
