import { existsSync } from "node:fs";
import { basename, resolve } from "node:path";
import {
  openSession,
  type ConditionStop,
  PeriodicEvalError,
  type Progress,
  type Session,
  type TrainerCallback,
} from "@periodic-eval/core";
import { advance, checkRequests, crossings, isTimed } from "@periodic-eval/core/session";
import { checkWritable, readRun, removeRunLeftovers } from "@periodic-eval/store";
import { writePage } from "@periodic-eval/dashboard";
import { beginningOf, watchCheckpoints, type WatchedCheckpoint, type WatchEnd } from "@periodic-eval/remote";
import { throwAll } from "../../config/config-file.ts";
import { startEngineOf, type Engine } from "../../config/open-model.ts";
import type { LoadTasks } from "../../config/open-grader.ts";
import { reportRun } from "../../run/report-run.ts";
import { CommandFailure, interruptedError, onInterrupt, stoppedCode } from "../../terminal/interrupt.ts";
import { progressOnly, type Terminal } from "../../terminal/terminal.ts";
import { configure, type WatchCommandOptions, type WatchConfiguration } from "./configuration.ts";
import { CheckpointGoneError, CurrentModel, keepTokenizer } from "./current-model.ts";
import { removeStop, reportStop, standingStop } from "./stop-file.ts";
import { consoleWithoutSteps, TrainerLosses } from "./trainer-losses.ts";
import {
  checkTraining,
  trainingPaths,
  lastPassed,
  standingPart,
  readWatchState,
  writeWatchState,
  type WatchState,
} from "./watch-state.ts";

interface Watching {
  readonly checkpoints: string;
  readonly options: WatchCommandOptions;
  readonly configuration: WatchConfiguration;
  readonly engine: Engine;
  readonly state: WatchState | null;
  readonly signal: AbortSignal;
  /** Reports a stop, once. */
  readonly onStop: (stop: ConditionStop, state: WatchState | null) => Promise<void>;
  readonly terminal: Terminal;
}

/** Measures the checkpoints of a folder, with the base model as step 0, and prints the report. Run again, it resumes. */
export async function watch(
  checkpoints: string,
  options: WatchCommandOptions,
  { terminal, loadTasks }: { readonly terminal: Terminal; readonly loadTasks: LoadTasks },
): Promise<void> {
  const { runDir, base, json } = options;
  await checkWritable(runDir);
  const progress = json ? progressOnly(terminal) : terminal;
  // Before the configuration opens a judge, which may run on this engine.
  const engine = await startEngineOf(options.config ?? null, { ...options, model: base }, progress);
  const { signal, stopListening } = onInterrupt(terminal);
  let stop: ConditionStop | null = null;
  try {
    const asked = { checkpoints: resolve(checkpoints), base };
    for (let isMeasured = false; !isMeasured && stop === null;) {
      const configuration = await configure(options, loadTasks);
      const { state } = await standingState(options, configuration.phase, asked, progress);
      const onStop = async (one: ConditionStop, at: WatchState | null) => {
        if (stop === null) await reportStop(runDir, one, { passed: at?.passed ?? [], terminal: progress });
        stop = one;
      };
      const watching = {
        checkpoints,
        options,
        configuration,
        engine,
        state,
        signal,
        onStop,
        terminal: progress,
      };
      isMeasured =
        (await measureCheckpoints(watching)) &&
        // Checkpoints may have been written again, or have arrived, while later ones were measured.
        (await standingState(options, configuration.phase, asked, { err: () => undefined })).isWhole;
    }
  } finally {
    stopListening();
    await engine.dispose();
  }
  await reportRun(runDir, { json }, terminal);
  if (stop !== null) throw new CommandFailure(stoppedCode);
}

/** Reads where an earlier watcher stopped, before the first checkpoint that has changed or arrived since; null if nothing stands. */
async function standingState(
  { runDir, pattern, order }: WatchCommandOptions,
  phase: string,
  asked: Pick<WatchState, "checkpoints" | "base">,
  terminal: Pick<Terminal, "err">,
): Promise<{ readonly state: WatchState | null; readonly isWhole: boolean }> {
  const known = await readWatchState(runDir, phase, asked);
  const paths = await trainingPaths(asked.checkpoints, { pattern, phase, known: known?.beginning ?? null });
  if (known === null) return { state: null, isWhole: true };
  const needsState = pattern === undefined;
  const { state, reason } = await standingPart(known, order === "latest" ? [] : paths, needsState);
  if (reason !== null) terminal.err(reason);
  return { state, isWhole: reason === null };
}

/**
 * Returns false if a checkpoint changed while it was measured, or became complete after a later one. Its step is not in the state
 * then, so that another call measures it: the session recognizes by the hash of the weights which measurements are still right.
 */
async function measureCheckpoints(watching: Watching): Promise<boolean> {
  const { checkpoints, options, state, signal, terminal } = watching;
  const { follow, order, pattern, runDir } = options;
  const earlier = await standingStop(runDir, watching.configuration, state);
  if (earlier !== null) {
    await watching.onStop(earlier.stop, state);
    if (state !== null && !earlier.isGraded) await (await WatchedPhase.open(watching, null)).close(false);
    return true;
  }
  // A trainer that starts again must not read it while this watcher waits for a checkpoint.
  await removeStop(runDir);
  const found = watchCheckpoints(checkpoints, {
    follow,
    order,
    ...(pattern !== undefined && { pattern }),
    ...(state !== null && { after: lastPassed(state).session.progress.step }),
    late: "end",
    log: (message) => terminal.err(message),
    signal,
  });
  if (state === null) await checkEarly(watching);
  const first = await found.next();
  if (signal.aborted) throw interruptedAt(runDir, state && lastPassed(state).session.progress);
  if (first.done === true && first.value.isLate) return false;
  if (
    first.done === true &&
    (state === null || !first.value.isFinished || (await isMeasured(watching, state)))
  ) {
    if (state === null) throw nothingYet(checkpoints, options);
    terminal.out(unchangedText(checkpoints, state, first.value));
    return true;
  }
  const phase = await WatchedPhase.open(watching, first.done === true ? null : first.value);
  try {
    let next = first;
    while (next.done !== true && !signal.aborted && !(await phase.isStopped())) {
      if (!(await phase.measure(next.value))) {
        await phase.abandon();
        return false;
      }
      if (!(await phase.isStopped())) next = await found.next();
    }
    const end = next.done === true ? next.value : null;
    if (end?.isLate === true) {
      await phase.abandon();
      return false;
    }
    await phase.close(end?.isFinished === true);
  } catch (error) {
    await phase.fail(error);
    throw error;
  }
  if (signal.aborted) throw interruptedAt(runDir, phase.progress);
  return true;
}

/** Whether training is finished and its end is measured. Measurements of its last checkpoint that were damaged are taken again. */
async function isMeasured({ options, configuration }: Watching, state: WatchState): Promise<boolean> {
  if (!state.finished) return false;
  const { step } = lastPassed(state).session.progress;
  const { problems } = await readRun(options.runDir);
  return !problems.some(
    ({ key, kind, invalid }) =>
      key?.phase === configuration.phase && key.step === step && (invalid || kind === "rows"),
  );
}

/** Throws before the first checkpoint what a session would throw at its begin, as far as it does not depend on the tokenizer. */
async function checkEarly({ options, configuration, engine }: Watching): Promise<void> {
  const { base, tokenizer = null } = options;
  const { callbacks, session } = configuration.block;
  const errors = await checkRequests({
    callbacks,
    ...session,
    model: await engine.outline(base, null, { tokenizer }),
  });
  throwAll(errors.filter((error) => !PeriodicEvalError.is(error, "model")).map(configuration.place));
}

/** The session of the watched training, and the model that it measures. */
class WatchedPhase {
  readonly #watching: Watching;
  readonly #session: Session;
  readonly #current: CurrentModel;
  readonly #losses: TrainerLosses;
  #state: WatchState | null;

  private constructor(watching: Watching, session: Session, current: CurrentModel, losses: TrainerLosses) {
    this.#watching = watching;
    this.#session = session;
    this.#current = current;
    this.#losses = losses;
    this.#state = watching.state;
  }

  /**
   * Begins or resumes the session. A new one measures the base model.
   *
   * @param first The first checkpoint that is not measured; null if all are.
   */
  static async open(watching: Watching, first: WatchedCheckpoint | null): Promise<WatchedPhase> {
    const { options, configuration, engine, state, signal, terminal } = watching;
    const { base, runDir, tokenizer = null } = options;
    const { phase, seed, block, loggers } = configuration;
    const last = state && lastPassed(state);
    const { path, kind } = first ?? last!;
    const baseTokenizer = tokenizer === null ? await keepTokenizer(path, runDir, phase) : null;
    const isAdapted = kind === "adapter";
    const current = new CurrentModel(
      { open: engine.open, base, tokenizer, baseTokenizer, isAdapted, signal },
      last,
    );
    const losses = new TrainerLosses();
    let isChecked = false;
    const session = openSession({
      run: runDir,
      phase,
      seed,
      maxSteps: first?.maxSteps ?? null,
      async model() {
        // A resumed session checks its evaluations with the base's tokenizer and configuration: its checkpoint may be deleted.
        if (isChecked || last === null) return current.get();
        isChecked = true;
        const outline = await engine.outline(base, null, { tokenizer: tokenizer ?? baseTokenizer });
        return isAdapted ? { ...outline, base: outline } : outline;
      },
      callbacks: block.callbacks,
      loggers: [consoleWithoutSteps(terminal), ...loggers.map((logger) => losses.forward(logger))],
      ...block.session,
      // Training runs in another process and does not wait.
      budget: { ...block.session.budget, overheadPercent: null },
      signal,
      ...(last !== null && { resume: last.session }),
    });
    const opened = new WatchedPhase(watching, session, current, losses);
    try {
      terminal.out(`${base} on ${engine.name}; snapshots go to ${runDir}/periodic_eval`);
      await session.begin();
      // The session now holds the run's lock.
      await removeRunLeftovers(runDir);
      return opened;
    } catch (error) {
      await opened.fail(error);
      throw error;
    }
  }

  get progress(): Progress {
    return this.#session.progress;
  }

  /** Whether a condition was met. Reports it at once, because `close` may wait minutes for grading. */
  async isStopped(): Promise<boolean> {
    const { conditionStop } = this.#session;
    if (conditionStop !== null) await this.#watching.onStop(conditionStop, this.#state);
    return conditionStop !== null;
  }

  /**
   * Measures what is due at a checkpoint. A checkpoint that is deleted meanwhile is skipped.
   *
   * @returns False if the checkpoint changed while it was measured.
   */
  async measure(checkpoint: WatchedCheckpoint): Promise<boolean> {
    const { checkpoints, terminal, signal, options, configuration } = this.#watching;
    const { step, path, maxSteps, epoch, kind, losses, waiting } = checkpoint;
    const { progress } = this.#session;
    checkTraining(this.#state?.beginning ?? null, checkpoint, configuration.phase);
    const total = maxSteps ?? progress.maxSteps;
    const behind =
      waiting === 0 ? "" : `; ${waiting} later ${waiting === 1 ? "checkpoint waits" : "checkpoints wait"}`;
    const place = `step ${step}${total === null ? "" : ` of ${total}`}`;
    const next = { ...progress, step, maxSteps: total, epoch: Math.max(progress.epoch, epoch ?? 0) };
    const isDue = configuration.block.callbacks.some((one) => mayCross(one, progress, next));
    terminal.out(`${basename(path)}: ${place}${isDue ? "" : ", nothing to measure"}${behind}`);
    const before = this.#current.moveTo({ path, kind });
    try {
      if (isDue) await this.#current.get();
    } catch (error) {
      if (signal.aborted) return true;
      if (!(error instanceof CheckpointGoneError)) throw error;
      this.#current.moveTo(before);
      const isThere = existsSync(path);
      terminal.err(
        `${basename(path)} ${isThere ? "changed while it was read, and is read again" : "was deleted while it was read, and is skipped"}`,
      );
      return !isThere;
    }
    const logged = this.#losses.next(losses, progress.step);
    const metrics = logged.at(-1)?.metrics;
    const { stop } = await this.#session.stepEnd({
      step,
      epoch: next.epoch,
      path,
      ...(maxSteps !== null && { maxSteps }),
      ...(metrics !== undefined && { metrics, logged }),
    });
    // The state of an interrupted measurement would resume after its checkpoint, which may be gone by then.
    if (signal.aborted) return true;
    if (isDue && (await this.#current.hasChanged())) {
      terminal.err(`${basename(path)} changed while it was measured, and is measured again`);
      return false;
    }
    if (stop !== null && this.#session.conditionStop === null)
      terminal.err(`a callback asks to stop training (${stop}): stop the trainer, which is another program`);
    // Absolute, because the next command may run in another folder.
    await this.#save({
      checkpoints: resolve(checkpoints),
      base: options.base,
      beginning: this.#state?.beginning ?? beginningOf(step, { losses, seed: checkpoint.seed ?? null }),
      passed: [
        ...(this.#state?.passed ?? []),
        {
          path: resolve(path),
          kind,
          signature: this.#current.signature,
          session: await this.#session.save(),
        },
      ],
      finished: false,
    });
    if (isDue) await writePage(options.runDir);
    return true;
  }

  /** Ends the session without a state of the last measurement. */
  async abandon(): Promise<void> {
    await this.#session.close();
    await this.#current.dispose();
  }

  /** @param isFinished Whether training has finished, so that its end is measured. */
  async close(isFinished: boolean): Promise<void> {
    const { signal, terminal } = this.#watching;
    if (isFinished && !signal.aborted) await this.#session.end();
    await this.#session.close();
    const { signature } = this.#current;
    await this.#current.dispose();
    if (signal.aborted || (await this.isStopped())) return;
    if (!isFinished) return terminal.out(unfinishedText(this.#session.progress));
    const state = this.#state!;
    const last = { ...lastPassed(state), ...(signature !== null && { signature }) };
    await this.#save({ ...state, passed: state.passed.with(-1, last), finished: true });
  }

  async fail(error: unknown): Promise<void> {
    await this.#session.fail(error).catch(() => undefined);
    await this.#session.close().catch(() => undefined);
    await this.#current.dispose();
  }

  async #save(state: WatchState): Promise<void> {
    const { options, configuration } = this.#watching;
    this.#state = state;
    await writeWatchState(options.runDir, configuration.phase, state);
  }
}

/** Whether a callback may ask for a measurement at the next checkpoint. */
function mayCross({ triggers, asks }: TrainerCallback, previous: Progress, next: Progress): boolean {
  if (triggers === undefined) return asks?.length !== 0;
  return isTimed(triggers) || crossings(triggers, previous, advance(previous, next)).length > 0;
}

const unfinishedText = ({ step, maxSteps }: Progress): string =>
  `training has not finished${maxSteps === null ? "" : ` (step ${step} of ${maxSteps})`}: run the same command again for later checkpoints, or with --follow to wait for them`;

const unchangedText = (checkpoints: string, state: WatchState, { isFinished }: WatchEnd): string => {
  const { step } = lastPassed(state).session.progress;
  return state.finished && isFinished
    ? `already measured: training finished at step ${step}`
    : `no checkpoint after step ${step} in ${checkpoints} yet`;
};

const nothingYet = (checkpoints: string, { follow, pattern }: WatchCommandOptions): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "data",
    where: checkpoints,
    got: "no complete checkpoint",
    expected: pattern === undefined ? "checkpoint-<N> or step_<N> folders" : `folders named ${pattern}`,
    fix: `${follow ? "Check that training writes checkpoints." : "Add --follow to wait for the first one."} --pattern gives other names.`,
  });

const interruptedAt = (runDir: string, progress: Progress | null): PeriodicEvalError =>
  interruptedError(
    runDir,
    progress === null ? "" : `after step ${progress.step}`,
    "Run the same command again to resume.",
  );
