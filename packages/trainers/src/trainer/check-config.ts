import { configError, nearest } from "@periodic-eval/contracts/options";
import { windowLength } from "@periodic-eval/tfjs";
import { evalName } from "../loop/validation.ts";
import type { OutlinedLM } from "./check-parts.ts";
import { scheduleOf } from "./schedule.ts";
import type { TrainerOptions } from "./trainer-options.ts";
import type { TrainingConfig } from "./training-config.ts";
import type { TrainingMethod } from "./training-method.ts";

/**
 * Checks a configuration against the model, the session and the validation rows. Reads no weights.
 *
 * @throws PeriodicEvalError `config` with the path of the option within the configuration.
 */
export function checkConfig<C extends TrainingConfig>(
  method: TrainingMethod<C>,
  { model, session }: Pick<TrainerOptions<C>, "session"> & { readonly model: OutlinedLM },
): void {
  const where = `${method.name} config`;
  checkMaxLength(where, method.config, model);
  checkActivationCheckpointing(where, method.config, model);
  if (method.config.saveAdapterAtFiring && session?.saveAtFiring !== undefined)
    throw configError({
      where,
      path: ["saveAdapterAtFiring"],
      got: "true together with the session's saveAtFiring",
      expected: "one of the two",
      fix: "Remove one of them.",
    });
  checkValidation(where, method);
  // With `epochs`, the length of the phase is only known once the rows are counted.
  const { maxSteps } = method.config;
  if (maxSteps !== null) scheduleOf(where, method.config, maxSteps);
}

function checkMaxLength(where: string, { maxLength }: TrainingConfig, model: OutlinedLM): void {
  const longest = windowLength(model);
  if (maxLength === null || maxLength <= longest) return;
  throw configError({
    where,
    path: ["maxLength"],
    value: maxLength,
    expected: `at most ${longest}, the model's context length`,
    fix: "Lower it, or remove it.",
  });
}

function checkActivationCheckpointing(
  where: string,
  { activationCheckpointing }: TrainingConfig,
  { enterActivationCheckpointing }: OutlinedLM,
): void {
  if (!activationCheckpointing || enterActivationCheckpointing !== undefined) return;
  throw configError({
    where,
    path: ["activationCheckpointing"],
    got: "true, for a model that does not support it",
    expected: "a model with enterActivationCheckpointing",
    fix: "Remove it, or lower batchSize and raise gradientAccumulation.",
  });
}

function checkValidation<C extends TrainingConfig>(where: string, method: TrainingMethod<C>): void {
  const { evalSteps, keepBest, validationShare } = method.config;
  if (method.hasValidation && validationShare !== null)
    throw configError({
      where,
      path: ["validationShare"],
      got: `${validationShare} together with validation rows`,
      expected: "one of the two",
      fix: "Remove one of them.",
    });
  if (method.hasValidation || validationShare !== null) {
    if (keepBest !== null) checkMetric(where, keepBest, method.heldOutMetrics.map(evalName));
  } else if (evalSteps !== null)
    throw configError({
      where,
      path: ["evalSteps"],
      got: `${evalSteps} without validation rows`,
      expected: "rows to validate on",
      fix: "Set validation, or validationShare: 0.1; or remove evalSteps.",
    });
}

function checkMetric(where: string, keepBest: string, metrics: readonly string[]): void {
  if (metrics.includes(keepBest)) return;
  throw configError({
    where,
    path: ["keepBest"],
    value: keepBest,
    expected: metrics.map((metric) => `"${metric}"`).join(" or "),
    fix: `Set keepBest to "${nearest(keepBest, metrics) ?? metrics[0]}", or to null.`,
  });
}
