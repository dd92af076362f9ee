import type { TrainerCallback } from "./callback.ts";
import type { Guard } from "./guard.ts";
import type { Awaitable, Json } from "./json.ts";
import type { EvaluableModel } from "./model.ts";
import type { Crossing, Progress } from "./schedule.ts";
import type { Layout } from "./snapshot.ts";
import type { Snapshot, SnapshotStore } from "./snapshot.ts";

/** A measurement that an abort cut off: who asked for it, and what. */
export interface OwedFiring {
  /** Id of the callback. */
  readonly by: string;
  readonly evaluation: { readonly name: string; readonly version: string };
  readonly on: "model" | "base";
  readonly crossed: readonly Crossing[];
  readonly plannedLooks: number | null;
}

/** What a checkpoint carries so that a session goes on where it stood. */
export interface SessionState {
  readonly phase: string;
  readonly progress: Progress;
  /** Steps of earlier phases of the run, so that `run_step` goes on counting. */
  readonly runStepOffset: number;
  readonly callbacks: Readonly<Record<string, Json>>;
  /** Seconds that training stood still so far; `progress.elapsedSeconds` leaves them out. */
  readonly windowSeconds: number;
  /**
   * What an abort cut off at this step, by snapshot id; left out where nothing was. A session resumed from here measures
   * it at its begin.
   */
  readonly owed?: Readonly<Record<string, OwedFiring>>;
}

/** Where a phase's training stands in its run. */
export interface RunProgress extends Progress {
  readonly phase: string;
  /** Steps of earlier phases added to `step`: an axis that never goes back from one phase to the next. */
  readonly runStep: number;
}

/** Where a phase begins or goes on, and what stands already. */
export interface PhaseBegin extends RunProgress {
  readonly resumed: boolean;
  /**
   * The graded snapshots of the run that stand here: of this phase up to this step where it is resumed, and of all others,
   * in the run's order. A process that died may have told of none of them.
   */
  readonly standing: readonly Snapshot[];
  /** The run's folder; left out where the run is a store of another kind. */
  readonly run?: string;
}

/** Receives what happens; one that throws, or does not answer, is recorded and never stops training. */
export interface Logger {
  readonly name: string;
  /**
   * How long training waits for a promise of this logger, in seconds; default 60. One that takes longer is told of, and then
   * passed over but for `close`.
   */
  readonly patienceSeconds?: number;
  /**
   * A phase begins (`resumed` false), or goes on from a checkpoint of this step. What was logged of later steps is of a
   * training that was cut off: those steps are trained again, and their snapshots that still stand are told again. Who
   * keeps a record of snapshots adds those of `standing` that it lacks.
   */
  begin?(at: PhaseBegin): Awaitable<void>;
  snapshot?(snapshot: Snapshot): Awaitable<void>;
  /** Metrics of training, as the loop gave them. */
  train?(metrics: Readonly<Record<string, number>>, at: RunProgress): Awaitable<void>;
  /** A window opens, items are done, something needs saying. Synchronous: it may be called in the middle of a window. */
  event?(event: SessionEvent): void;
  close?(): Awaitable<void>;
}

export type SessionEvent =
  | { readonly kind: "warning"; readonly where: string; readonly message: string }
  | {
      readonly kind: "measuring";
      readonly id: string;
      readonly step: number;
      readonly done: number;
      readonly total: number;
    };

/** Where a window opens. */
export interface FiringPlace {
  readonly phase: string;
  readonly progress: Progress;
}

/** What measuring may take. */
export interface Budget {
  /**
   * Ceiling of what measuring may add to training: window seconds ÷ training seconds of the phase, in percent; default
   * 20, null for none. Where the phase's length is known it is held against the whole phase, projected from the steps
   * so far, else against what has been trained. Start and end are always whole, and count.
   */
  readonly overheadPercent?: number | null;
  /** Longest pause between start and end of training, in seconds; no limit by default. Start and end are always whole. */
  readonly secondsPerWindow?: number | null;
  /** How long `close` waits for grading that still runs; default 600. What is not done then is finished on resume. */
  readonly drainSeconds?: number;
  /** Nothing is measured while the machine has less free memory than this, in bytes; no limit by default. */
  readonly minFreeBytes?: number | null;
}

export interface SessionOptions {
  /** The run's folder (snapshots go to `<run>/periodic_eval`), or a store. */
  readonly run: string | SnapshotStore;
  /** Of the snapshots of a run that is a folder, default `nested`; a store has its own. A run goes on in either. */
  readonly layout?: Layout;
  /** Default `train`. Matches `[A-Za-z0-9][\w.-]*`; unique within the run. */
  readonly phase?: string;
  /** Null where it is not known: percent triggers then fire at the end only, with one warning. */
  readonly maxSteps: number | null;
  /** Default `"42"`. All randomness of measuring is derived from it. */
  readonly seed?: string;
  /**
   * What is measured. A function is called once before step 1, for the checks, and once for each window, of which all
   * measurements see the model it gave; the session disposes of none.
   */
  readonly model: EvaluableModel | ((at: Progress) => Awaitable<EvaluableModel>);
  readonly callbacks: readonly TrainerCallback[];
  readonly guards?: readonly Guard[];
  readonly loggers?: readonly Logger[];
  readonly budget?: Budget;
  /** What a throwing evaluation or hook does: a `failed` snapshot and go on (default), or throw, for tests. */
  readonly onFailure?: "record" | "throw";
  /** What a broken receipt does: ask the loop to stop (default), throw out of `stepEnd`, or only record it. */
  readonly onBrokenReceipt?: "stop" | "throw" | "record";
  /**
   * Called once in each window in which something is measured, on the frozen weights: keeps them, and returns where.
   * The path is in the snapshots; what it throws is a warning, and is there in its place.
   */
  readonly saveAtFiring?: (at: FiringPlace) => Promise<string>;
  readonly signal?: AbortSignal;
  readonly resume?: SessionState;
  /** Steps of earlier phases; taken from `resume` where given, else by default the largest `run_step` of the phases before. */
  readonly runStepOffset?: number;
  /**
   * What looks are compared with: the phase's own start (default), the first phase's start, the model without its
   * adapter (`adapter_off`: measured once a phase, at the first look, and kept under `<id>.adapter_off`), or the start of an
   * earlier run, by the path of its folder or of its snapshots. A path has a separator: `./run-1`.
   */
  readonly baseline?: "phase_start" | "run_start" | "adapter_off" | (string & Record<never, never>);
  /**
   * What shares the 5 % of false alarms of a phase: the primary metric of each evaluation (default), all else being
   * exploratory; or all of its metrics and their groups, by Holm's method.
   */
  readonly familywise?: "primary" | "all";
  /** Seconds from an arbitrary origin; for tests. */
  readonly clock?: () => number;
  /** ISO 8601 time of now; for tests. */
  readonly now?: () => string;
}

/** What the callbacks ask of the loop; null where nothing is asked. */
export interface Control {
  readonly stop: string | null;
  readonly save: string | null;
}

export interface StepEnd {
  /** Completed steps; default one more than before. */
  readonly step?: number;
  readonly epoch?: number;
  readonly maxSteps?: number | null;
  readonly metrics?: Readonly<Record<string, number>>;
}

/**
 * The owner of a run's measurements. Order of calls: `begin`, then `stepEnd` after every optimizer step, `save` for
 * every checkpoint, `end` or `fail`, `close`. The first `stepEnd` begins a session that was not begun.
 */
export interface Session {
  readonly phase: string;
  readonly progress: Progress;
  /**
   * What a guard saw disturbed, which ends training; null where nothing was, or `onBrokenReceipt` is not `"stop"`. The
   * weights are then no longer those that training made: no checkpoint should be written of them, nor trained on.
   */
  readonly brokenReceipt: string | null;
  begin(known?: { readonly maxSteps?: number | null }): Promise<Control>;
  /** Before a step, for hooks that want the weights before it; a loop may leave it out, and `onStepBegin` comes with `stepEnd`. */
  stepBegin(): Promise<void>;
  stepEnd(at?: StepEnd): Promise<Control>;
  /**
   * Metrics of the step that was told last, for what is known only once `stepEnd` has answered: to loggers and `onLog`.
   *
   * @throws PeriodicEvalError `config` before `begin` and after the end.
   */
  log(metrics: Readonly<Record<string, number>>): Promise<void>;
  /**
   * Calls `onSave` and returns the state for a checkpoint of the step just ended, what `onSave` changed included.
   * Snapshots that the store refused are tried again first: a run resumed from the checkpoint does not measure them anew.
   *
   * @throws PeriodicEvalError `config` before `begin`.
   */
  save(): Promise<SessionState>;
  end(): Promise<void>;
  fail(error: unknown): Promise<void>;
  /**
   * Ends grading, writes what is left to write, closes callbacks, loggers and the store. May be called at any time: a
   * call that is not done is waited for, its measurement cut off as by an abort. Only while a callback's hook runs it is
   * refused, for a hook that awaited it would wait for itself: hooks end training with `requestStop`.
   *
   * @throws PeriodicEvalError `store` where snapshots could not be written to the last; `config` while a hook runs, and
   * the session stays open.
   */
  close(): Promise<void>;
}
