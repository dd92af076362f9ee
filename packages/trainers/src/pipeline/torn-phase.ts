import { PeriodicEvalError } from "@periodic-eval/core";
import { logWarning } from "@periodic-eval/core/session";
import { checkpointsOf } from "../checkpoint/checkpoints.ts";
import { readState } from "../checkpoint/trainer-state.ts";
import type { TrainerOptions, TrainResult } from "../trainer/trainer.ts";

interface NamedPhase {
  readonly phase: string;
  readonly method?: "sft" | "dpo";
}

/**
 * The result of a finished phase of which no checkpoint is whole, where the next one's holds all that is trained: nothing is
 * then wanted of the torn one but what its state says. Not before preferences, whose reference may be the model as they began.
 *
 * @returns null where the phase is to be trained or gone on with, which tells what is torn.
 */
export async function resultOfTorn(
  torn: NamedPhase,
  next: NamedPhase | undefined,
  { runDir, resume = "auto", loggers = [] }: Pick<TrainerOptions, "runDir" | "resume" | "loggers">,
): Promise<TrainResult | null> {
  if (next === undefined || next.method === "dpo" || resume === "never") return null;
  const tell = (where: string, message: string) => logWarning(loggers, where, message);
  const of = ({ phase }: NamedPhase) => checkpointsOf({ runDir, phase, keep: 1, warn: tell });
  if ((await of(next).startOfNewest()) === undefined) return null;
  const found = await of(torn)
    .newest()
    .catch((error: unknown) => error);
  if (!PeriodicEvalError.is(found, "store")) return null;
  const [step] = await of(torn).steps();
  const path = of(torn).folderOf(step ?? 0);
  const state = await readState(path);
  if (typeof state === "string" || !state.finished) return null;
  const whole = await of(next)
    .newest()
    .catch(() => null);
  if (whole === null) return null;
  logWarning(loggers, path, `torn, and not needed: phase "${next.phase}" goes on from ${whole.path}`);
  return {
    phase: torn.phase,
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
