import { join } from "node:path";
import { checkpointsOf } from "../checkpoint/checkpoints.ts";
import { refuseOtherPhases } from "../trainer/phase-start.ts";
import type { TrainerOptions } from "../trainer/trainer.ts";

/**
 * Looks at what the run's checkpoints say of the phases that came before theirs: where a phase was put in, left out or moved
 * before one that has begun, a resume would undo what is trained before it. Told before the first step; nothing is changed.
 *
 * @throws PeriodicEvalError `config` naming the phase.
 */
export async function checkOrder(
  phases: readonly { readonly phase: string }[],
  { runDir, resume = "auto" }: Pick<TrainerOptions, "runDir" | "resume">,
): Promise<void> {
  if (resume === "never") return;
  for (const [at, { phase }] of phases.entries()) {
    const start = await checkpointsOf({ runDir, phase, keep: 1, warn: () => undefined }).startOfNewest();
    const before = phases.slice(0, at).map((one) => one.phase);
    refuseOtherPhases(join(runDir, "checkpoints", phase), phase, start, before);
  }
}
