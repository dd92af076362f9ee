import { PeriodicEvalError } from "@periodic-eval/core";
import { dirname } from "@periodic-eval/store/platform";
import { logWarning } from "@periodic-eval/core/session";
import { checkpointsOf, stepsIn } from "../checkpoint/checkpoints.ts";
import { readState } from "../checkpoint/trainer-state.ts";
import type { TrainResult } from "../trainer/trainer.ts";
import type { TrainerOptions } from "../trainer/trainer-options.ts";

interface NamedPhase {
  readonly phase: string;
  readonly method?: "sft" | "dpo";
}

/**
 * Returns the result of a finished phase whose checkpoints are all damaged, from its state alone. That suffices if the next
 * phase has a complete checkpoint, which holds all trained weights. It does not before a DPO phase, whose reference may be
 * the model at its start.
 *
 * @returns Null if the phase must be trained or resumed; that reports the damage.
 */
export async function resultOfDamaged(
  damaged: NamedPhase,
  next: NamedPhase | undefined,
  { runDir, resume = "auto", loggers = [] }: Pick<TrainerOptions, "runDir" | "resume" | "loggers">,
): Promise<TrainResult | null> {
  if (next === undefined || next.method === "dpo" || resume === "never") return null;
  const warn = (where: string, message: string) => logWarning(loggers, where, message);
  const checkpoints = ({ phase }: NamedPhase) => checkpointsOf({ runDir, phase, keep: 1, warn });
  if ((await checkpoints(next).startOfNewest()) === undefined) return null;
  const found = await checkpoints(damaged)
    .newest()
    .catch((error: unknown) => error);
  if (!PeriodicEvalError.is(found, "store")) return null;
  const { folderOf } = checkpoints(damaged);
  const [step] = await stepsIn(dirname(folderOf(0)));
  const path = folderOf(step ?? 0);
  const state = await readState(path);
  if (typeof state === "string" || !state.finished) return null;
  const complete = await checkpoints(next)
    .newest()
    .catch(() => null);
  if (complete === null) return null;
  warn(path, `damaged, but not needed: phase "${next.phase}" continues from ${complete.path}`);
  return {
    phase: damaged.phase,
    steps: state.step,
    maxSteps: state.max_steps ?? state.step,
    epochs: state.epoch,
    finalLoss: state.loss,
    stopReason: state.stop_reason,
    brokenReceipt: null,
    resumedFrom: state.step,
    skippedUpdates: state.skipped_updates,
    checkpoint: path,
    best: null,
    badRows: [],
  };
}
