import type { TrainerCallback, Progress, PhaseClosing, Snapshot } from "@periodic-eval/contracts";
import { configError } from "@periodic-eval/contracts/options";
import { plannedSteps } from "../../schedule/crossings.ts";
import { differencesOf, otherItems } from "@periodic-eval/store";
import type { Preflight } from "./preflight.ts";
import { provenanceOf } from "./prepare.ts";

export interface FinishedCheck {
  readonly callbacks: readonly TrainerCallback[];
  readonly preflight: Preflight;
  readonly phase: string;
  readonly seed: string;
  readonly at: Progress;
  /** The settled snapshots of the phase. */
  readonly standing: readonly Snapshot[];
  readonly closings: readonly PhaseClosing[];
}

/**
 * Checks that a finished run is not asked for measurements that it does not have: nothing would measure them. While another phase
 * of the run has to be trained, its measurements may change.
 *
 * @throws PeriodicEvalError `config` that names the callback and how it differs, with the remedy.
 */
export async function checkFinished(check: FinishedCheck): Promise<void> {
  const { callbacks, phase, closings } = check;
  if (closings.some(({ finished }) => !finished)) return;
  for (const callback of callbacks) {
    const different = await differencesFromRun(check, callback);
    if (different.length === 0) continue;
    throw configError({
      where: `callback "${callback.id}"`,
      got: `a finished phase "${phase}", which was measured with ${different.join(", ")}`,
      expected: "the callbacks and questions with which the run was trained",
      fix: "To train with these measurements, name another run folder. To measure the final weights, use `eval` on the last checkpoint.",
    });
  }
}

async function differencesFromRun(
  { preflight, seed, at, standing }: FinishedCheck,
  callback: TrainerCallback,
): Promise<readonly string[]> {
  const { id, asks = [], triggers = [], on = "model" } = callback;
  const ofCallback = standing.filter((one) => one.id === id);
  if (ofCallback.length === 0)
    return plannedSteps(triggers, at.maxSteps)?.includes(at.maxSteps!) === true
      ? ["no measurement of this callback"]
      : [];
  const model = await preflight.modelAt(at);
  for (const evaluation of asks) {
    const last = ofCallback.findLast(
      (one) => one.evaluation === evaluation.name && one.provenance.items_hash !== null,
    );
    if (last === undefined) continue;
    const asked = provenanceOf(evaluation, await preflight.prepare(model, evaluation, on, callback), seed);
    // The weights are measured: another backend would measure the same model.
    const provenance = { ...asked, model: last.provenance.model, tokenizer: last.provenance.tokenizer };
    const here = { evaluation: evaluation.name, evaluation_version: evaluation.version, on, provenance };
    const different = differencesOf(last, here);
    if (different.length > 0) return different;
    const { items, items_hash } = last.provenance;
    // Another subset may be paired, but was not measured.
    if (items_hash !== asked.items_hash) return [otherItems(items, asked.items)];
  }
  return [];
}
