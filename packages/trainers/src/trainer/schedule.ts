import { PeriodicEvalError } from "@periodic-eval/core";
import { learningRates, type LearningRate } from "../optimizer/learning-rate.ts";
import { decayStepsOf, type TrainingConfig } from "./training-config.ts";

/**
 * The learning rates that a configuration asks for.
 *
 * @param name how errors call the configuration: `SFT config`
 * @param maxSteps optimizer steps of the phase
 * @throws PeriodicEvalError `config` where warm-up and decay do not fit into the phase.
 */
export function scheduleOf(name: string, config: TrainingConfig, maxSteps: number): LearningRate {
  const { learningRate: peak, schedule, decayType } = config;
  const warmupSteps = config.warmupSteps ?? Math.ceil((config.warmupRatio ?? 0) * maxSteps);
  const decaySteps = decayStepsOf(config, maxSteps);
  if (warmupSteps > maxSteps || (schedule === "wsd" && warmupSteps + decaySteps > maxSteps)) {
    const decay = schedule === "wsd" ? ` and ${decaySteps} of decay` : "";
    throw new PeriodicEvalError({
      code: "config",
      where: `${name} ${schedule === "wsd" ? "schedule" : "warmupSteps"}`,
      got: `${warmupSteps} steps of warm-up${decay}`,
      expected: `at most the ${maxSteps} steps of the phase`,
      fix: `Shorten warm-up${schedule === "wsd" ? " or decay" : ""}, or train longer.`,
    });
  }
  return learningRates[schedule]({ peak, maxSteps, warmupSteps, decaySteps, decayType });
}
