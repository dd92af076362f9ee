import * as tf from "@tensorflow/tfjs-core";
import type { Checkpoint } from "../checkpoint/checkpoints.ts";
import type { TrainerState } from "../checkpoint/trainer-state.ts";
import { writeTraining } from "../checkpoint/training-state.ts";
import { leaveOut } from "./non-finite.ts";
import type { BestCheckpoint, Phase, RunningPhase, PhaseResult } from "./phase.ts";
import { update } from "./update.ts";
import { isBetter, type Best } from "./validation.ts";

/** Where a running phase stands. */
interface Standing {
  /** Completed optimizer steps. */
  step: number;
  loss: number | null;
  stopReason: string | null;
  checkpoint: string | null;
  skippedUpdates: number;
  skippedInARow: number;
  /** The best of which there is a checkpoint. */
  best: Best | null;
}

/**
 * Trains a phase to its end inside an open session: one optimizer step after another, each told to the session, with
 * checkpoints when they are due, when a callback asks and at the end, none of weights that measuring has disturbed. A phase
 * that its checkpoint says is finished gets no step; the session then only completes what measuring was interrupted.
 */
export async function runPhase(running: RunningPhase): Promise<PhaseResult> {
  const { phase, session, resumed } = running;
  const { maxSteps, stepsPerEpoch, config } = phase;
  const begun = await session.begin({ maxSteps });
  const isFinished = resumed !== null && isOver(resumed.state, maxSteps);
  const at: Standing = {
    step: resumed?.state.step ?? 0,
    loss: resumed?.state.loss ?? null,
    stopReason: isFinished ? resumed.state.stop_reason : begun.stop,
    checkpoint: resumed?.path ?? null,
    skippedUpdates: resumed?.state.skipped_updates ?? 0,
    skippedInARow: resumed?.state.skipped_in_a_row ?? 0,
    best: bestBefore(phase, resumed),
  };
  // A resumed phase stands at a checkpoint already.
  if (begun.save !== null && resumed === null) await saveCheckpoint(running, at);
  while (!isFinished && at.stopReason === null && at.step < maxSteps) {
    await session.stepBegin();
    const metrics = await takeStep(phase, at);
    const validated = await validate(phase, at.step);
    const isLogged =
      at.step === 1 || at.step === maxSteps || at.step % config.logSteps === 0 || validated !== null;
    const { stop, save } = await session.stepEnd({
      step: at.step,
      epoch: at.step / stepsPerEpoch,
      ...(isLogged && { metrics: { ...metrics, ...validated } }),
    });
    at.stopReason = stop;
    const isDue = config.saveSteps !== null && at.step % config.saveSteps === 0;
    const atStop = validated ?? (await validateStop(running, at));
    const best = bestOf(phase, at, atStop);
    if (isDue || save !== null || stop !== null || at.step === maxSteps || best !== null)
      await saveCheckpoint(running, at, best);
    // A turn of the event loop, so that background grading and timers go on beside synchronous backends.
    await tf.nextFrame();
  }
  // The end is measured too, and what that disturbs is to be told as well.
  await session.end();
  const { brokenReceipt } = session;
  return {
    phase: phase.name,
    steps: at.step,
    maxSteps,
    epochs: at.step / stepsPerEpoch,
    finalLoss: at.loss,
    stopReason: brokenReceipt ?? at.stopReason,
    brokenReceipt,
    resumedFrom: resumed?.state.step ?? null,
    skippedUpdates: at.skippedUpdates,
    checkpoint: at.checkpoint,
    best: bestCheckpoint(phase, at.best),
  };
}

/** Metrics on held-out rows, null where they are not due; what is not finite is told of and left out. */
async function validate(
  { name, validation, config, maxSteps, stepsPerEpoch, warn }: Phase,
  step: number,
  isEnd = step === maxSteps,
): Promise<Readonly<Record<string, number>> | null> {
  const isDue = isEnd || step % (config.evalSteps ?? stepsPerEpoch) === 0;
  if (validation === null || !isDue) return null;
  const found = Object.entries(await validation.measure());
  for (const [metric, value] of found)
    if (!Number.isFinite(value)) warn(`phase ${name}, step ${step}`, `${metric} is ${value}`);
  return Object.fromEntries(found.filter(([, value]) => Number.isFinite(value)));
}

/** The end that a callback has made is validated too; what is aborted goes on later, and disturbed weights are no end. */
async function validateStop(
  { phase, session }: RunningPhase,
  { step, stopReason }: Standing,
): Promise<Readonly<Record<string, number>> | null> {
  if (stopReason === null || phase.signal?.aborted || session.brokenReceipt !== null) return null;
  const validated = await validate(phase, step, true);
  if (validated !== null) await session.log(validated);
  return validated;
}

/** A new best, of which a checkpoint is due; null where there is none. */
function bestOf(
  { validation, config }: Phase,
  { step, best }: Standing,
  validated: Readonly<Record<string, number>> | null,
): Best | null {
  const metric = config.keepBest;
  const value = metric === null ? undefined : validated?.[metric];
  if (metric === null || value === undefined) return null;
  const look = { metric, value, step, rows: validation!.hash };
  return isBetter(look, best) ? look : null;
}

/** What an earlier training kept by another metric is no best of this one, and none where none is to be kept. */
function bestBefore({ config }: Phase, resumed: Checkpoint | null): Best | null {
  const best = resumed?.state.best ?? null;
  return best?.metric === config.keepBest ? best : null;
}

function bestCheckpoint({ checkpoints }: Phase, best: Best | null): BestCheckpoint | null {
  if (best === null) return null;
  const { metric, value, step } = best;
  return { metric, value, step, checkpoint: checkpoints.folderOf(step) };
}

/** One optimizer step; returns its metrics. */
async function takeStep(phase: Phase, at: Standing): Promise<Readonly<Record<string, number>>> {
  const startedAt = phase.clock();
  const work = phase.work(at.step);
  const learningRate = phase.learningRate(at.step);
  const { gradientNorm, config } = phase;
  const { maxGradNorm } = config;
  const result = await update(work, phase.optimizer, { learningRate, maxGradNorm, gradientNorm });
  const { loss, gradNorm, applied } = result;
  if (applied) {
    at.loss = loss;
    at.skippedInARow = 0;
  } else {
    at.skippedInARow += 1;
    leaveOut(phase, at, work, result);
    at.skippedUpdates += 1;
  }
  at.step += 1;
  return {
    ...(applied ? { loss, grad_norm: gradNorm, ...result.means } : { skipped_updates: at.skippedUpdates }),
    learning_rate: learningRate,
    tokens_per_second: work.tokens / Math.max(1e-6, phase.clock() - startedAt),
  };
}

/** A resume from disturbed weights would make the disturbance last: of these there is no checkpoint. */
async function saveCheckpoint(
  { phase, session, resumed }: RunningPhase,
  at: Standing,
  newBest: Best | null = null,
): Promise<void> {
  const isDisturbed = () => session.brokenReceipt !== null;
  if (isDisturbed()) return;
  const state = await session.save();
  if (isDisturbed()) return;
  const { maxSteps, stepsPerEpoch, model, optimizer, config, signal } = phase;
  const { step, loss, stopReason, skippedUpdates, skippedInARow } = at;
  const best = newBest ?? at.best;
  // What an abort cut off goes on when it is resumed; what a callback ended stays ended.
  const isEnded = stopReason !== null && signal?.aborted !== true;
  at.checkpoint = await phase.checkpoints.save(
    {
      schema_version: 1,
      phase: phase.name,
      step,
      max_steps: maxSteps,
      epoch: step / stepsPerEpoch,
      finished: isEnded || step >= maxSteps,
      stop_reason: isEnded ? stopReason : null,
      loss,
      best,
      skipped_updates: skippedUpdates,
      skipped_in_a_row: skippedInARow,
      seed: config.seed,
      optimizer_steps: optimizer.steps,
      exact: phase.exact(step),
      start: phase.start ?? resumed?.state.start,
      session: state,
    },
    (folder) => writeTraining(folder, model, optimizer),
  );
  at.best = best;
}

/** A phase that was stopped stays so; one that ran to its end goes on where `maxSteps` has grown. */
function isOver({ finished, stop_reason, step }: TrainerState, maxSteps: number): boolean {
  return finished && (stop_reason !== null || step >= maxSteps);
}
