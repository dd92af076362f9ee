import { PeriodicEvalError } from "@periodic-eval/core";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import { inEvaluation } from "@periodic-eval/tfjs";
import type { Learner } from "../loop/learner.ts";
import { accumulate } from "../loop/step-work.ts";
import { passGradients, type SDPOPass, type UntaughtPass } from "./pass.ts";
import type { SDPOConfig } from "./sdpo-config.ts";
import type { SDPOMetrics } from "./sdpo-options.ts";

/** The position of a gradient step in training; seeds its dropout. */
export interface GradientStepPosition {
  readonly phase: string;
  readonly updates: number;
  /** Completed gradient steps of the current update. */
  readonly step: number;
}

/**
 * Takes one gradient step on a batch. Returns its metrics.
 *
 * @throws PeriodicEvalError `model` if the loss or gradient norm is NaN or Inf; this step then changes no weight.
 */
export async function takeGradientStep(
  learner: Learner,
  passes: readonly UntaughtPass[],
  config: SDPOConfig,
  position: GradientStepPosition,
): Promise<SDPOMetrics> {
  const { model } = learner;
  const { phase, updates, step } = position;
  const taught: SDPOPass[] = [];
  for (const { readTeacher, ...pass } of passes) taught.push({ ...pass, teacher: await readTeacher() });
  const work = {
    divisor: responseTokens(passes),
    tokens: passes.reduce((sum, { batch }) => sum + batch.tokens, 0),
    where: [],
    gradients: () => {
      const each = taught.map((pass, i) => () => {
        const random = (place: string) =>
          namedStream(seedOf(String(config.seed), phase, updates, step, i, place));
        return passGradients(model, pass, { ...config, random });
      });
      return config.disableDropout ? inEvaluation(model, () => accumulate(each)) : accumulate(each);
    },
  };
  const { loss, gradNorm, means, applied } = await learner.update(work, config.learningRate);
  if (!applied) throw nonFiniteError(position, loss, gradNorm);
  return {
    loss,
    grad_norm: gradNorm,
    kl_reg: null,
    ...(means as Omit<SDPOMetrics, "loss" | "grad_norm" | "kl_reg">),
  };
}

export const responseTokens = (passes: readonly Pick<SDPOPass, "batch">[]): number =>
  passes.reduce((sum, { batch }) => sum + batch.targets.length, 0);

/** How to undo a partly learned batch. */
export const recoveryAdvice =
  "resume() restores the last checkpoint; if there is none, create a new model and trainer";

const nonFiniteError = (
  { phase, updates, step }: GradientStepPosition,
  loss: number,
  gradNorm: number,
): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "model",
    where: `phase ${phase}, update ${updates + 1}, gradient step ${step + 1}`,
    got: `a loss of ${loss} and a gradient norm of ${gradNorm}`,
    expected: "finite numbers",
    fix:
      (step === 0
        ? "Continue with another batch: the weights are unchanged. "
        : `Continue with another batch, but first undo what was learned of this one: ${recoveryAdvice}. `) +
      'A lower learningRate is a new training: use a new model and trainer, with another runDir or resume("never").',
  });
