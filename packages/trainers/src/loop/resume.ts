import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { checkWord } from "@periodic-eval/core/internal";
import type { Checkpoint } from "../checkpoint/checkpoints.ts";
import { readTraining } from "../checkpoint/training-state.ts";
import { refuseOtherStart } from "../trainer/phase-start.ts";
import type { Phase } from "./phase.ts";

/** `auto` goes on from the phase's newest whole checkpoint; `never` sets what there is aside and begins anew. */
export type Resume = "auto" | "never";

/** Throws a `config` error for a word that says nothing: taking it for `auto` would go on with what was to be set aside. */
export function checkResume(where: string, resume: unknown): void {
  if (resume !== undefined) checkWord(where, resume, ["auto", "never"]);
}

/** Brings model and optimizer to where the phase stopped. Null where it begins anew. */
export async function resumePhase(
  phase: Pick<Phase, "checkpoints" | "exact" | "model" | "optimizer"> & Partial<Pick<Phase, "start">>,
  resume: Resume,
): Promise<Checkpoint | null> {
  if (resume === "never") {
    await phase.checkpoints.setAside();
    return null;
  }
  const newest = await phase.checkpoints.newest();
  if (newest === null) return null;
  refuseOtherStart(newest.path, newest.state.phase, newest.state.start, phase.start);
  refuseOther(newest, phase.exact(newest.state.step));
  await readTraining(newest.path, phase.model, phase.optimizer, newest.state.optimizer_steps);
  return newest;
}

/** A resume with another model, other data or arithmetic would be neither the old run nor a new one. */
function refuseOther({ path, state }: Checkpoint, exact: Readonly<Record<string, Json>>): void {
  const written = state.exact;
  const differing = [...new Set([...Object.keys(written), ...Object.keys(exact)])].filter(
    (name) => canonicalJson(written[name] ?? null) !== canonicalJson(exact[name] ?? null),
  );
  if (differing.length === 0) return;
  const shown = (from: Readonly<Record<string, Json>>) =>
    differing.map((name) => `${name} ${JSON.stringify(from[name] ?? null)}`).join(", ");
  throw new PeriodicEvalError({
    code: "config",
    where: path,
    got: shown(exact),
    expected: `${shown(written)}, as the checkpoint was trained with`,
    fix: 'Resume with the same configuration, data and model, choose another runDir, or start anew with resume: "never".',
  });
}
