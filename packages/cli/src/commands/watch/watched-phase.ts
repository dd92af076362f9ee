import { existsSync } from "node:fs";
import { basename, resolve } from "node:path";
import {
  openSession,
  type ConditionStop,
  type Progress,
  type Session,
  type TrainerCallback,
} from "@periodic-eval/core";
import { advance, crossings, isTimed } from "@periodic-eval/core/session";
import { writePage } from "@periodic-eval/dashboard";
import { beginningOf, type WatchedCheckpoint } from "@periodic-eval/remote";
import { removeRunLeftovers } from "@periodic-eval/store";
import type { Engine } from "../../config/open-model.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import type { WatchCommandOptions, WatchConfiguration } from "./configuration.ts";
import { CheckpointGoneError, CurrentModel, keepTokenizer } from "./current-model.ts";
import { consoleWithoutSteps, TrainerLosses } from "./trainer-losses.ts";
import { checkTraining, lastPassed, writeWatchState, type WatchState } from "./watch-state.ts";

export interface Watching {
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

/** The session of the watched training, and the model that it measures. */
export class WatchedPhase {
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

  /** Whether a condition is met by a verdict that has arrived since the last checkpoint. */
  async meetsCondition(): Promise<boolean> {
    await this.#session.testConditions();
    return this.isStopped();
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
    const position = `step ${step}${total === null ? "" : ` of ${total}`}`;
    const next = { ...progress, step, maxSteps: total, epoch: Math.max(progress.epoch, epoch ?? 0) };
    const isDue = configuration.block.callbacks.some((callback) => mayCross(callback, progress, next));
    terminal.out(`${basename(path)}: ${position}${isDue ? "" : ", nothing to measure"}${behind}`);
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
