import type { TrainerCallback } from "../../contracts/callback.ts";
import type { Evidence } from "../../contracts/snapshot.ts";
import { disturbed, seen } from "./broken-receipt.ts";
import { isBroken } from "./run-guarded.ts";
import type { HookEvidence, Run } from "../run.ts";

/**
 * Keeps for the callback's next snapshot what a guard saw a hook disturb, and tells of it once: a hook does at every
 * step what it did at the first.
 */
export function keepHookEvidence(run: Run, callback: TrainerCallback, hook: string, piece: Evidence): void {
  const { step } = run.progress;
  const by = `${hook} of callback "${callback.id}" at step ${step}`;
  // Of a leak it matters that there is one, not which hook leaks.
  const what = piece.advisory === true ? piece.part : `${piece.part} in ${hook}`;
  const kept = run.hookEvidence.get(callback) ?? new Map<string, HookEvidence>();
  const note = [piece.note, `by ${by}`].filter(Boolean).join("; ");
  const { first, times } = kept.get(what) ?? { first: { ...piece, note }, times: 0 };
  run.hookEvidence.set(callback, kept.set(what, { first, times: times + 1, lastStep: step }));
  const told = `${callback.id}: ${what}`;
  const isTold = run.toldHooks.has(told);
  run.toldHooks.add(told);
  if (isBroken(piece)) return disturbed(run, piece, by, isTold);
  if (isTold) return;
  run.telling.warn(`guard "${piece.part}"`, `saw a change by ${by}, and tells of it once: ${seen(piece)}`);
}

/** Hands over what was kept of a callback's hooks. */
export function takeHookEvidence(run: Run, callback: TrainerCallback): Evidence[] {
  const kept = [...(run.hookEvidence.get(callback)?.values() ?? [])];
  run.hookEvidence.delete(callback);
  return kept.map(({ first, times, lastStep }) =>
    times === 1 || first.advisory === true
      ? first
      : { ...first, note: `${first.note}, and ${times} times in all up to step ${lastStep}` },
  );
}
