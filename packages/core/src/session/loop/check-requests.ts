import type { EvaluableModel } from "../../contracts/model.ts";
import { findBaseline } from "../records/baseline.ts";
import { isMissingFile, prepareEvaluation, whereOf } from "../window/preflight.ts";
import type { SessionOptions } from "../../contracts/session.ts";

/** What of a session's options says what it will measure. */
export interface RequestCheck extends Pick<SessionOptions, "callbacks" | "baseline"> {
  /** Its weights need not be there: no number is asked of it. */
  readonly model: EvaluableModel;
}

/**
 * What a session would refuse at its `begin`, as far as it shows without weights and graders: abilities that the model lacks,
 * data that is missing or wrong, an earlier run that is not there. A missing file of an optional callback is no mistake.
 *
 * @returns what is wrong, at most one error for each evaluation and one for the baseline.
 */
export async function checkRequests({
  callbacks,
  baseline = "phase_start",
  model,
}: RequestCheck): Promise<readonly unknown[]> {
  const wrong: unknown[] = [];
  const check = async (one: () => Promise<unknown>, isOptional = false) => {
    try {
      await one();
    } catch (error) {
      if (!isOptional || !isMissingFile(error)) wrong.push(error);
    }
  };
  for (const callback of callbacks) {
    for (const evaluation of callback.asks ?? []) {
      const where = whereOf(callback, evaluation);
      const prepared = () =>
        prepareEvaluation({ prepared: new Map() }, model, evaluation, callback.on ?? "model", where);
      await check(prepared, callback.optional);
    }
  }
  await check(() => findBaseline(baseline, model));
  return wrong;
}
