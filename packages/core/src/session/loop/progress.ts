import {
  type Progress,
  type RunProgress,
  type SessionState,
  type StepEnd,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { configError, isCount } from "@periodic-eval/contracts/options";
import { advance } from "../../schedule/crossings.ts";
import type { PhaseClock } from "../budget/phase-clock.ts";
import type { Position } from "../records/new-snapshot.ts";
import { checkMaxSteps } from "./options.ts";

/** The progress of a phase, now and at the previous hook. */
export class PhaseProgress {
  readonly phase: string;
  readonly seed: string;
  readonly #now: () => string;
  readonly #clock: PhaseClock;
  current: Progress;
  previous: Progress | null = null;
  runStepOffset = 0;
  #checkpoint: string | null = null;

  constructor(phase: string, seed: string, now: () => string, clock: PhaseClock, start: Progress) {
    this.phase = phase;
    this.seed = seed;
    this.#now = now;
    this.#clock = clock;
    this.current = start;
  }

  /** Starts the phase, or continues it from a checkpoint's state. */
  begin(maxSteps: number | null, runStepOffset: number, resumed: SessionState | null): void {
    this.runStepOffset = runStepOffset;
    if (resumed === null) {
      this.current = { ...this.current, maxSteps };
      return;
    }
    // Nothing was crossed since the checkpoint: hooks see where it was taken.
    this.previous = { ...resumed.progress, ended: false };
    this.current = advance(this.previous, { ...this.previous, maxSteps });
  }

  /** @param checkpoint The folder that the weights were read from, if training runs in another process. */
  moveTo(next: Progress, checkpoint: string | null = this.#checkpoint): void {
    this.previous = this.current;
    this.current = advance(this.current, next);
    this.#checkpoint = checkpoint;
  }

  /**
   * Returns the progress after a step.
   *
   * @throws PeriodicEvalError `config` for a step or epoch that falls.
   */
  after(at: StepEnd): Progress {
    const current = this.current;
    const { step = current.step + 1, epoch = current.epoch, maxSteps = null } = at;
    const where = "session.stepEnd";
    if (!isCount(step) || step < current.step) {
      throw configError({
        where,
        path: ["step"],
        got: `step ${step} after step ${current.step}`,
        expected: "integers that do not fall",
        fix: "Count completed optimizer steps of this phase.",
      });
    }
    if (!(Number.isFinite(epoch) && epoch >= current.epoch)) {
      throw configError({
        where,
        path: ["epoch"],
        got: `epoch ${epoch} after epoch ${current.epoch}`,
        expected: "finite numbers that do not fall",
        fix: "Count completed passes over the data.",
      });
    }
    checkMaxSteps(where, maxSteps);
    const elapsedSeconds = this.trainingSeconds();
    return { step, epoch, maxSteps: maxSteps ?? current.maxSteps, elapsedSeconds, ended: false };
  }

  /** Returns the seconds of training. Rounding must not make them fall: a threshold would be crossed twice. */
  trainingSeconds(): number {
    const { wall, windows } = this.#clock.seconds();
    return Math.max(this.current.elapsedSeconds, wall - windows);
  }

  /** Returns where the run is, for loggers. */
  inRun(): RunProgress {
    return { ...this.current, phase: this.phase, runStep: this.#runStep };
  }

  /** Returns where the run is, for measurements. */
  position(): Position {
    const { phase, seed } = this;
    const checkpoint = this.#checkpoint;
    return { phase, seed, progress: this.current, runStep: this.#runStep, now: this.#now, checkpoint };
  }

  get #runStep(): number {
    return this.runStepOffset + this.current.step;
  }
}

/** Returns the error for a call of a session's method in the wrong state or with a wrong argument. */
export function misuse(method: string, got: string, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "config", where: `session.${method}`, got, expected, fix });
}
