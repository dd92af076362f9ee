import { configError } from "@periodic-eval/contracts/options";
import { hashJson } from "@periodic-eval/core/random";
import { fingerprintWeights, type TrainableLM } from "@periodic-eval/tfjs";
import { namedTrainables } from "./saved-tensors.ts";
import type { PhaseStart } from "./trainer-state.ts";

/**
 * Describes the state in which a phase starts: the earlier phases, and a hash of the trainable weights as they left them.
 * The hash is null for a first phase: no checkpoint of the run holds its initial weights, and a resume restores its own.
 */
export async function phaseStartOf(model: TrainableLM, after: readonly string[]): Promise<PhaseStart> {
  if (after.length === 0) return { after: [], weights: null };
  const trained = namedTrainables(model).sort((a, b) => (a.name < b.name ? -1 : 1));
  return { after: [...after], weights: await fingerprintWeights(trained, { method: "exact" }) };
}

/**
 * Throws if a checkpoint belongs to a phase that started after other phases: loading it would undo what the phases before it
 * trained this time. An undefined side is unknown and matches everything.
 *
 * @param where The checkpoint, or the folder of the phase's checkpoints.
 * @throws PeriodicEvalError `config`.
 */
export function checkEarlierPhases(
  where: string,
  phase: string,
  written: PhaseStart | undefined,
  after: readonly string[] | undefined,
): void {
  if (written === undefined || after === undefined || hashJson(written.after) === hashJson([...after]))
    return;
  throw startMismatch(where, {
    got: `phase "${phase}" ${describeOrder(after)}`,
    expected: `${describeOrder(written.after)}, as in its checkpoint`,
  });
}

/**
 * Like `checkEarlierPhases`, and also throws if the same phases left other weights, for example because one of them was
 * trained further or repeated.
 */
export function checkStart(
  where: string,
  phase: string,
  written: PhaseStart | undefined,
  start: PhaseStart | undefined,
): void {
  checkEarlierPhases(where, phase, written, start?.after);
  if (written === undefined || start === undefined || written.weights === start.weights) return;
  throw startMismatch(where, {
    got: `phase "${phase}" starting from other weights than "${start.after.at(-1)}" left when the checkpoint was written`,
    expected: "the weights that the checkpoint's phase started from",
  });
}

const describeOrder = (after: readonly string[]): string =>
  after.length === 0 ? "as the first phase" : `after ${after.map((name) => `"${name}"`).join(", ")}`;

const startMismatch = (where: string, { got, expected }: { got: string; expected: string }) =>
  configError({
    where,
    got,
    expected,
    fix: 'Restore the order of the phases, rename the phase to train it again, choose another runDir, or start over with resume: "never".',
  });
