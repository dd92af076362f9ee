import type { EvaluableModel, SessionOptions } from "@periodic-eval/contracts";
import { checkBaseline } from "../window/check-baseline.ts";
import { evaluationPlace, lacksOptionalQuestions, prepareEvaluation } from "../window/prepare.ts";

/** The session options that decide what will be measured. */
export interface RequestCheck extends Pick<SessionOptions, "callbacks" | "baseline"> {
  /** May lack its weights: the check asks it for no numbers. */
  readonly model: EvaluableModel;
}

/**
 * Finds the errors that a session would throw at its `begin`, as far as they show without weights and graders: missing
 * abilities, missing or wrong data, an earlier run that does not exist.
 *
 * @returns The errors: at most one for each evaluation, and one for the baseline.
 */
export async function checkRequests({
  callbacks,
  baseline = "phase_start",
  model,
}: RequestCheck): Promise<readonly unknown[]> {
  const errors: unknown[] = [];
  const check = async (one: () => Promise<unknown>) => {
    try {
      await one();
    } catch (error) {
      errors.push(error);
    }
  };
  for (const callback of callbacks) {
    for (const evaluation of callback.asks ?? []) {
      const where = evaluationPlace(callback, evaluation);
      await check(async () => {
        try {
          await prepareEvaluation({ prepared: new Map() }, model, evaluation, callback.on ?? "model", where);
        } catch (error) {
          // The session disables it, with a warning.
          if (!lacksOptionalQuestions(evaluation, error)) throw error;
        }
      });
    }
  }
  await check(() => checkBaseline(baseline, model));
  return errors;
}
