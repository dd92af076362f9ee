import { PeriodicEvalError, type Session } from "@periodic-eval/core";
import { nextTurn } from "@periodic-eval/core/model";
import type { Checkpoint } from "../checkpoint/checkpoints.ts";
import type { TrainerState } from "../checkpoint/trainer-state.ts";
import type { UpdateResult } from "./learner.ts";
import type { BestCheckpoint, Phase, PhaseResult, RunningPhase } from "./phase.ts";
import { type StepWork, isBetter, type Best } from "./training-data.ts";

/** The state of a running phase. */
interface PhaseState {
  /** Completed optimizer steps. */
  step: number;
  loss: number | null;
  stopReason: string | null;
  /** The last checkpoint of the phase; null if there is none. */
  checkpoint: string | null;
  skippedUpdates: number;
  /** Consecutive skipped updates. */
  skippedInARow: number;
  /** The best value that has a checkpoint. */
  best: Best | null;
}

/**
 * Trains a phase to its end inside an open session and reports each optimizer step to it. Writes checkpoints every
 * `saveSteps`, when a callback requests one, at a new best and at the end; never of weights that measuring has disturbed. If
 * the checkpoint says that the phase is finished, no step is taken and the session only completes interrupted measurements.
 */
export async function runPhase(running: RunningPhase): Promise<PhaseResult> {
  const { phase, session, resumed } = running;
  const { maxSteps, stepsPerEpoch, config } = phase;
  const begun = await session.begin({ maxSteps });
  // The session now holds the run's lock.
  await phase.learner.checkpoints.tidy(resumed?.state ?? null);
  const isFinished = resumed !== null && isOver(resumed.state, maxSteps, session);
  const at: PhaseState = {
    step: resumed?.state.step ?? 0,
    loss: resumed?.state.loss ?? null,
    stopReason: isFinished ? resumed.state.stop_reason : begun.stop,
    checkpoint: resumed?.path ?? null,
    skippedUpdates: resumed?.state.skipped_updates ?? 0,
    skippedInARow: resumed?.state.skipped_in_a_row ?? 0,
    best: bestBefore(phase, resumed),
  };
  // A resumed phase already has a checkpoint at this step. `restore` may need the weights before training.
  const isWanted = begun.save !== null || config.restore !== null;
  if (isWanted && resumed === null) await saveCheckpoint(running, at);
  while (!isFinished && at.stopReason === null && at.step < maxSteps) {
    await session.stepBegin();
    at.stopReason = session.brokenReceipt;
    if (at.stopReason !== null) break;
    // Another process trains this run on, or its folder is gone: nothing that this training did could be saved.
    if (session.lost !== null) throw session.lost;
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
    // Yields to the event loop, so that background grading and timers run beside synchronous backends.
    await nextTurn();
  }
  // The final measurements may break the receipt too.
  await session.end();
  const { brokenReceipt, conditionStop } = session;
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
    conditionStop,
    ...(await lastClean(phase, session)),
  };
}

/** Finds the last clean checkpoint, and restores it if a condition ended training and the configuration asks for it. */
async function lastClean(
  { name, learner, config, warn }: Phase,
  { cleanStep, conditionStop }: Session,
): Promise<Pick<PhaseResult, "lastClean" | "isRestored">> {
  const checkpoint = cleanStep === null ? null : await learner.checkpoints.atOrBefore(cleanStep);
  const clean = checkpoint && { step: checkpoint.state.step, checkpoint: checkpoint.path };
  if (conditionStop === null || config.restore === null) return { lastClean: clean, isRestored: false };
  if (checkpoint === null) {
    const before =
      cleanStep === null ? "" : ` at or before step ${cleanStep}, after which a condition was met`;
    warn(
      `phase ${name}`,
      `no checkpoint to restore${before}: the model keeps the last weights. Save and measure more often (saveSteps, every_percent).`,
    );
    return { lastClean: null, isRestored: false };
  }
  await learner.restore(checkpoint);
  return { lastClean: clean, isRestored: true };
}

/** Returns finite metrics on held-out rows and warns of the others; null if validation is not due at this step. */
async function validate(
  { name, validation, config, maxSteps, stepsPerEpoch, warn }: Phase,
  step: number,
  isEnd = step === maxSteps,
): Promise<Readonly<Record<string, number>> | null> {
  const isDue = isEnd || step % (config.evalSteps ?? stepsPerEpoch) === 0;
  if (validation === null || !isDue) return null;
  const metrics = Object.entries(await validation.measure());
  for (const [metric, value] of metrics)
    if (!Number.isFinite(value)) warn(`phase ${name}, step ${step}`, `${metric} is ${value}`);
  return Object.fromEntries(metrics.filter(([, value]) => Number.isFinite(value)));
}

/** Validates when a callback stops training. An aborted phase resumes later, and disturbed weights are not a result. */
async function validateStop(
  { phase, session }: RunningPhase,
  { step, stopReason }: PhaseState,
): Promise<Readonly<Record<string, number>> | null> {
  if (stopReason === null || phase.signal?.aborted || session.brokenReceipt !== null) return null;
  const validated = await validate(phase, step, true);
  if (validated !== null) await session.log(validated);
  return validated;
}

/** Returns a new best value, which gets a checkpoint; null if there is none. */
function bestOf(
  { validation, config }: Phase,
  { step, best }: PhaseState,
  validated: Readonly<Record<string, number>> | null,
): Best | null {
  const metric = config.keepBest;
  const value = metric === null ? undefined : validated?.[metric];
  if (metric === null || value === undefined) return null;
  const candidate = { metric, value, step, rows: validation!.hash };
  return isBetter(candidate, best) ? candidate : null;
}

/** Returns the best of the checkpoint if it was kept by the same metric. */
function bestBefore({ config }: Phase, resumed: Checkpoint | null): Best | null {
  const best = resumed?.state.best ?? null;
  return best?.metric === config.keepBest ? best : null;
}

function bestCheckpoint({ learner }: Phase, best: Best | null): BestCheckpoint | null {
  if (best === null) return null;
  const { metric, value, step } = best;
  return { metric, value, step, checkpoint: learner.checkpoints.folderOf(step) };
}

/** Takes one optimizer step. Returns its metrics. */
async function takeStep(phase: Phase, at: PhaseState): Promise<Readonly<Record<string, number>>> {
  const startedAt = phase.clock();
  const work = phase.work(at.step);
  const learningRate = phase.learningRate(at.step);
  const result = await phase.learner.update(work, learningRate).catch((error: unknown) => {
    const saved = at.checkpoint === null ? "no checkpoint yet" : `last checkpoint ${at.checkpoint}`;
    throw phase.explain(error, `forward and backward pass and update of step ${at.step + 1} (${saved})`);
  });
  const { loss, gradNorm, applied } = result;
  if (applied) {
    at.loss = loss;
    at.skippedInARow = 0;
  } else {
    at.skippedInARow += 1;
    skipOrThrow(phase, at, work, result);
    at.skippedUpdates += 1;
  }
  at.step += 1;
  return {
    ...(applied ? { loss, grad_norm: gradNorm, ...result.means } : { skipped_updates: at.skippedUpdates }),
    learning_rate: learningRate,
    tokens_per_second: work.tokens / Math.max(1e-6, phase.clock() - startedAt),
  };
}

/** Writes a checkpoint, unless measuring has disturbed the weights: a resume would make the disturbance permanent. */
async function saveCheckpoint(
  { phase, session, resumed }: RunningPhase,
  at: PhaseState,
  newBest: Best | null = null,
): Promise<void> {
  const isDisturbed = () => session.brokenReceipt !== null;
  if (isDisturbed()) return;
  const state = await session.save();
  if (isDisturbed()) return;
  const { maxSteps, stepsPerEpoch, signal } = phase;
  const { step, loss, stopReason, skippedUpdates, skippedInARow } = at;
  const best = newBest ?? at.best;
  // An aborted phase continues on resume; a phase that a callback stopped stays stopped.
  const isEnded = stopReason !== null && signal?.aborted !== true;
  at.checkpoint = await phase.learner.save({
    step,
    max_steps: maxSteps,
    epoch: step / stepsPerEpoch,
    finished: isEnded || step >= maxSteps,
    stop_reason: isEnded ? stopReason : null,
    stop_condition: isEnded ? (session.conditionStop?.condition ?? null) : null,
    loss,
    best,
    clean_step: session.cleanStep,
    skipped_updates: skippedUpdates,
    skipped_in_a_row: skippedInARow,
    exact: phase.exact(step),
    start: phase.start ?? resumed?.state.start,
    session: state,
  });
  at.best = best;
}

/**
 * Whether no step is left: a stopped phase stays stopped, unless its condition is gone, but a finished one continues if `maxSteps` has
 * grown.
 */
function isOver(
  { finished, stop_reason, stop_condition, step }: TrainerState,
  maxSteps: number,
  { conditionStop }: Pick<Session, "conditionStop">,
): boolean {
  const isFreed = stop_condition !== null && conditionStop === null;
  return finished && ((stop_reason !== null && !isFreed) || step >= maxSteps);
}

/**
 * Warns that an update is skipped because its loss or gradient norm is NaN or Inf.
 *
 * @throws PeriodicEvalError `model` if `onNonFinite` is not `skip`, or if more than `maxSkippedInARow` updates are skipped.
 */
function skipOrThrow(
  { name, config, warn }: Phase,
  at: PhaseState,
  work: StepWork,
  result: UpdateResult,
): void {
  const where = `phase ${name}, step ${at.step + 1}`;
  const { onNonFinite, maxSkippedInARow } = config;
  const isTooMany = maxSkippedInARow !== null && at.skippedInARow > maxSkippedInARow;
  const rows = work.where.length > 8 ? `${work.where.slice(0, 8).join(", ")}, …` : work.where.join(", ");
  const got = `a loss of ${result.loss} and a gradient norm of ${result.gradNorm} on the rows ${rows}`;
  if (onNonFinite === "skip" && !isTooMany) return warn(where, `${got}; the update was skipped`);
  throw new PeriodicEvalError({
    code: "model",
    where,
    got: onNonFinite === "skip" ? `${got}, after ${maxSkippedInARow} skipped updates in a row` : got,
    expected: "finite numbers",
    fix: advice(onNonFinite, at.checkpoint),
  });
}

/** A checkpoint resumes only with the same rows and learning rate; without one, both may change. */
function advice(onNonFinite: "error" | "skip", checkpoint: string | null): string {
  const lenience = onNonFinite === "skip" ? "raise maxSkippedInARow" : 'set onNonFinite: "skip"';
  return checkpoint === null
    ? `Correct these rows, lower the phase's learningRate, or ${lenience}, and train again: the phase has no checkpoint yet and starts over.`
    : `To continue from ${checkpoint}, ${lenience} and train again with resume: "auto". Corrected rows or a lower learningRate ` +
        'make it a different training: start over with resume: "never" or another runDir.';
}
