import { PeriodicEvalError } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { fingerprintWeights, weightName, type TrainableLM } from "@periodic-eval/core/tfjs";
import type { PhaseStart } from "../checkpoint/trainer-state.ts";

/**
 * What a phase begins from: the phases before it, and what they made of the weights that it trains. A first phase begins with
 * weights that no checkpoint of the run holds, of which nothing is asked: its resume puts its own back.
 */
export async function phaseStartOf(model: TrainableLM, after: readonly string[]): Promise<PhaseStart> {
  if (after.length === 0) return { after: [], weights: null };
  const trained = model
    .trainables()
    .map((variable) => ({ name: weightName(variable), read: () => variable }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return { after: [...after], weights: await fingerprintWeights(trained, { method: "exact" }) };
}

/**
 * Refuses a checkpoint of a phase that began after other phases: loaded, it would undo what those before it have trained
 * now. Where either does not say, nothing is compared.
 *
 * @param where the checkpoint, or the folder of the phase's.
 */
export function refuseOtherPhases(
  where: string,
  phase: string,
  written: PhaseStart | undefined,
  after: readonly string[] | undefined,
): void {
  if (written === undefined || after === undefined || hashJson(written.after) === hashJson([...after]))
    return;
  throw otherStart(where, {
    got: `phase "${phase}" ${inWords(after)}`,
    expected: `${inWords(written.after)}, as its checkpoint began`,
  });
}

/** Likewise where the same phases have left other weights: one of them was trained on, say, or anew. */
export function refuseOtherStart(
  where: string,
  phase: string,
  written: PhaseStart | undefined,
  start: PhaseStart | undefined,
): void {
  refuseOtherPhases(where, phase, written, start?.after);
  if (written === undefined || start === undefined || written.weights === start.weights) return;
  throw otherStart(where, {
    got: `phase "${phase}" with other weights to begin from than "${start.after.at(-1)}" had left`,
    expected: "those that its checkpoint began from",
  });
}

const inWords = (after: readonly string[]): string =>
  after.length === 0 ? "as the first phase" : `after ${after.map((name) => `"${name}"`).join(", ")}`;

const otherStart = (where: string, { got, expected }: { got: string; expected: string }): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "config",
    where,
    got,
    expected,
    fix: 'Put the phases back as they were, give the phase another name to train it anew, choose another runDir, or begin all anew with resume: "never".',
  });
