import type { CallbackCondition, Crossing, Progress, TrainerCallback } from "./callback.ts";
import type { Guard } from "./guard.ts";
import type { Awaitable, Json } from "./json.ts";
import type { EvaluableModel } from "./model.ts";
import type { ConditionStop, Layout, SnapshotStore } from "./run-record.ts";
import type { Snapshot, SnapshotKey } from "./snapshot.ts";

/** A measurement that an abort interrupted: which callback requested it, and what. */
export interface InterruptedMeasurement {
  /** Id of the callback that requested it. */
  readonly by: string;
  readonly evaluation: { readonly name: string; readonly version: string };
  readonly on: "model" | "base";
  readonly crossed: readonly Crossing[];
  /** The request's `plannedComparisons`. */
  readonly plannedComparisons: number | null;
}

/** The state in a checkpoint from which a session resumes. */
export interface SessionState {
  readonly phase: string;
  readonly progress: Progress;
  /** Steps of earlier phases of the run; `run_step` continues from it. Omitted if unknown: the snapshots of those phases tell. */
  readonly runStepOffset?: number;
  readonly callbacks: Readonly<Record<string, Json>>;
  /** Seconds that windows have taken so far; `progress.elapsedSeconds` does not include them. */
  readonly windowSeconds: number;
  /**
   * The measurements that an abort interrupted at this step, by snapshot id; omitted if there are none. A resumed session
   * takes them at its begin.
   */
  readonly interrupted?: Readonly<Record<string, InterruptedMeasurement>>;
  /**
   * The snapshots of the run at this step: steps by `<phase>/<id>`. A resumed session calls `onSnapshot` with those of its phase
   * that are not listed.
   */
  readonly snapshots?: Readonly<Record<string, readonly number[]>>;
  /**
   * The snapshots whose grades `onSnapshot` had not received when this state was read: steps by `<phase>/<id>`; omitted if there
   * are none. A resumed session calls `onSnapshot` with those that were graded in the meantime.
   */
  readonly unreported?: Readonly<Record<string, readonly number[]>>;
}

/** The progress of a phase and its place in the run. */
export interface RunProgress extends Progress {
  readonly phase: string;
  /** `step` plus the steps of earlier phases: an axis that never falls from one phase to the next. */
  readonly runStep: number;
  /** The step at which training logged the metrics, if it is an earlier one; omitted otherwise. */
  readonly loggedAt?: number;
}

/** Where a phase begins or resumes, and the snapshots that already stand. */
export interface PhaseBegin extends RunProgress {
  readonly resumed: boolean;
  /**
   * The graded snapshots that belong to the run at this point, in the run's order: those of this phase up to the resumed step,
   * and those of all other phases. A process that crashed may have logged none of them.
   */
  readonly standing: readonly Snapshot[];
  /** The run's folder; omitted if the run is a custom store. */
  readonly run?: string;
  /** True if no callback of the phase can measure anything; omitted otherwise. */
  readonly measuresNothing?: true;
  /** True if the checkpoint is the finished phase, so that nothing is left to train or measure; omitted otherwise. */
  readonly alreadyFinished?: true;
  /**
   * The last step that an earlier training of this phase is known to have reached, if the phase starts again without a checkpoint
   * of it; omitted otherwise. Its measurements are used again where the weights are the same.
   */
  readonly startsAgainAfter?: number;
  /** True if training runs in another process; omitted otherwise. */
  readonly isElsewhere?: true;
}

/** Where the session of a phase closes. */
export interface PhaseEnd extends RunProgress {
  /** Whether training ended, also early. False: it was interrupted or failed, or measuring disturbed it. */
  readonly finished: boolean;
  /** Why snapshots are not written: another process took over the run, its folder is gone, its disk is full; omitted otherwise. */
  readonly lost?: string;
  /** The condition of `stopWhen` that ended training; omitted if none did. */
  readonly stop?: ConditionStop;
}

/** Receives metrics, snapshots and events. A logger that throws or does not answer is reported and never stops training. */
export interface Logger {
  readonly name: string;
  /**
   * How long training waits for a promise of this logger, in seconds; default 60. If it takes longer, this is reported, and only
   * `close` of the logger is still called.
   */
  readonly patienceSeconds?: number;
  /**
   * Called when a phase begins (`resumed` is false) or resumes from a checkpoint of this step. Logs of later steps belong to the
   * interrupted training: those steps are trained again, and their snapshots that still stand are logged again. A logger that
   * stores snapshots adds those in `standing` that it lacks.
   */
  begin?(at: PhaseBegin): Awaitable<void>;
  snapshot?(snapshot: Snapshot): Awaitable<void>;
  /** Called with the training metrics of a step. */
  train?(metrics: Readonly<Record<string, number>>, at: RunProgress): Awaitable<void>;
  /** Called for warnings and for the progress of a measurement. Synchronous: it may be called in the middle of a window. */
  event?(event: SessionEvent): void;
  /** Called once when the session of a phase closes, after its last snapshot. Not called if the process is killed. */
  end?(at: PhaseEnd): Awaitable<void>;
  close?(): Awaitable<void>;
}

/** How fast a measurement runs. */
export interface MeasurementPace {
  /** Since the measurement began. */
  readonly seconds: number;
  /** Tokens read and written so far, those of a call that is running included where its engine reports them; null if none does. */
  readonly tokens: number | null;
}

export type SessionEvent =
  | {
      readonly kind: "warning";
      readonly where: string;
      readonly message: string;
      /** The failed measurement that the warning is about, if its snapshot follows with the same reason; omitted otherwise. */
      readonly failed?: SnapshotKey;
    }
  | ({
      readonly kind: "measuring";
      readonly id: string;
      readonly step: number;
      /** Rows so far, and rows of the whole measurement. */
      readonly done: number;
      readonly total: number;
    } & MeasurementPace)
  /** A measurement was graded in the background. Callbacks and loggers receive its snapshot at the next step. */
  | { readonly kind: "graded"; readonly id: string; readonly step: number }
  /** The budget's plan for the phase: how many measurements of which size, and the expected overhead. */
  | { readonly kind: "plan"; readonly message: string }
  /** Training was asked to stop after this step of the phase, for the first reason of several. */
  | { readonly kind: "stop"; readonly step: number; readonly message: string };

/** Where a window opens. */
export interface WindowPlace {
  readonly phase: string;
  readonly progress: Progress;
}

/** Limits on the time and memory that measuring may use. */
export interface Budget {
  /**
   * Ceiling on overhead: window seconds ÷ training seconds of the phase, in percent; default 20, null for none. If the length of
   * the phase is known, the training seconds of the whole phase are projected from the steps so far; otherwise the training
   * seconds so far are used. Measurements at start and end always run in full, and count. To keep the ceiling, measurements
   * between them use fewer items (see `Evaluation.minItems`); if that does not suffice, fewer measurements are taken, evenly
   * spaced.
   */
  readonly overheadPercent?: number | null;
  /** Seconds of measuring per phase that the ceiling does not limit; default 60. */
  readonly graceSeconds?: number;
  /** Longest window between start and end, in seconds; no limit by default. Start and end always run in full. */
  readonly secondsPerWindow?: number | null;
  /** How long `close` waits for grading, in seconds; default 600. A resumed run finishes the rest. */
  readonly drainSeconds?: number;
  /** Skips measurements while the machine has less free memory than this, in bytes; no limit by default. */
  readonly minFreeBytes?: number | null;
  /** Whether messages spell these options as a `periodic_eval` block does (`overhead_percent`); `buildPeriodicEval` sets it. */
  readonly inBlock?: boolean;
}

export interface SessionOptions {
  /** The run's folder, whose snapshots are in `<run>/periodic_eval`; or a store. */
  readonly run: string | SnapshotStore;
  /** Layout of the snapshots in the run's folder, default `nested`. A store has its own. A run can be resumed in either. */
  readonly layout?: Layout;
  /** Default `train`. Matches `[A-Za-z0-9][\w.-]*`; unique within the run. */
  readonly phase?: string;
  /** Null if it is unknown: percent triggers then measure only at the end, with one warning. */
  readonly maxSteps: number | null;
  /** Default `"42"`. All random streams of measuring are derived from it. */
  readonly seed?: string;
  /**
   * The model to measure. A function is called once before step 1, for the checks, and once for each window; all measurements of
   * the window use the model that it returns. The session disposes no model.
   */
  readonly model: EvaluableModel | ((at: Progress) => Awaitable<EvaluableModel>);
  readonly callbacks: readonly TrainerCallback[];
  /**
   * Returns the model that the evaluations of a callback measure at a step, such as the step's adapter on a server; null for `model`.
   */
  readonly modelOf?: (callback: TrainerCallback, at: Progress) => Awaitable<EvaluableModel | null>;
  readonly guards?: readonly Guard[];
  /**
   * Token ids of some training rows, for a model that was loaded from files. If it expects them no better than shifted ids, its
   * vocabulary has another order than its tokenizer, and the snapshots have a warning. Trainers pass them.
   */
  readonly trainedTexts?: readonly (readonly number[])[];
  /** Default: plain lines on the console. An empty array logs nothing but warnings. */
  readonly loggers?: readonly Logger[];
  readonly budget?: Budget;
  /**
   * How long the session waits for a hook, for `saveAtFiring`, or for the `items`, `check` or `measure` of an evaluation, that
   * shows no progress, in seconds; default 600, `Infinity` for ever. Progress is a call of the model, its end, tokens that it
   * counts, or a report (`progress`, and any method of a hook's context). Work that takes longer is logged every minute and then
   * abandoned: its signal aborts, its late result is ignored, the guards are left, and training continues with a warning or a
   * failed snapshot. Abandoned work is not started again before it settles. Code that blocks the process cannot be abandoned; for
   * `grade` see `Budget.drainSeconds`.
   */
  readonly patienceSeconds?: number;
  /** If an evaluation or hook throws: training continues (default), with a `failed` snapshot; or throw, for tests. */
  readonly onFailure?: "record" | "throw";
  /** After a broken receipt: request a stop (default), throw from `stepEnd`, or only record it. */
  readonly onBrokenReceipt?: "stop" | "throw" | "record";
  /**
   * Saves the weights and returns their path. Called once in each window that measures something, on the frozen weights. The
   * snapshots hold the path. An error becomes a warning, and the snapshots hold its message instead.
   */
  readonly saveAtFiring?: (at: WindowPlace) => Promise<string>;
  readonly signal?: AbortSignal;
  readonly resume?: SessionState;
  /** Steps of earlier phases. Default: that of `resume`, else the largest `run_step` of the phases before. */
  readonly runStepOffset?: number;
  /**
   * The baseline of comparisons: the phase's own start (default), the first phase's start, the model without its adapter
   * (`adapter_off`: measured once per phase, with the first measurement, under the id `<id>.adapter_off`), or the start of an
   * earlier run, given by the path of its folder or of its snapshots. A path has a separator: `./run-1`.
   */
  readonly baseline?: "phase_start" | "run_start" | "adapter_off" | (string & Record<never, never>);
  /**
   * The comparisons that share the 5 % of false alarms of a phase: those of each evaluation's primary metric (default; all others
   * are exploratory), or those of all its metrics and groups, by Holm's method.
   */
  readonly familywise?: "primary" | "all";
  /**
   * Conditions that end training, in the grammar of gates: `alignment worse`, `capability.accuracy < 40 %`. All of them together stop
   * a phase without harm in at most 5 % of cases: the 5 % are split over the conditions, and over the planned measurements of each
   * evaluation. With conditions, `end` waits for grading, and with a limit `begin` does: they may be met.
   */
  readonly stopWhen?: readonly StopCondition[];
  /** Returns seconds since an arbitrary origin; for tests. */
  readonly clock?: () => number;
  /** Returns the current time, ISO 8601; for tests. */
  readonly now?: () => string;
}

/**
 * A condition, alone or with options. `evenAtStart`: if the condition holds before step 1, training ends there; without it, that is an
 * error of `begin`. `location`: where it is written, for errors; default: these options.
 */
export type StopCondition =
  | string
  | {
      readonly when: string;
      readonly evenAtStart?: boolean;
      readonly location?: CallbackCondition["location"];
    };

/** Requests of callbacks to the training loop, each with its reason; null if not requested. */
export interface Control {
  readonly stop: string | null;
  readonly save: string | null;
}

export interface StepEnd {
  /** Completed steps. Default: one more than before. */
  readonly step?: number;
  readonly epoch?: number;
  readonly maxSteps?: number | null;
  readonly metrics?: Readonly<Record<string, number>>;
  /**
   * The values that training logged since the step before, at its own steps, if training runs in another process. The training curves take
   * it instead of `metrics`.
   */
  readonly logged?: readonly { readonly step: number; readonly metrics: Readonly<Record<string, number>> }[];
  /**
   * Folder of the checkpoint that the measured weights were read from, if training runs in another process. Guards cannot
   * observe that training, so the receipts of this and later steps name the checkpoint instead.
   */
  readonly path?: string;
}

/**
 * Takes the measurements of one phase. Order of calls: `begin`, then `stepEnd` after every optimizer step, `save` for every
 * checkpoint, `end` or `fail`, `close`. If `begin` was not called, the first `stepEnd` begins the session.
 */
export interface Session {
  readonly phase: string;
  readonly progress: Progress;
  /**
   * The disturbance that ends training; null if there was none, or if `onBrokenReceipt` is not `"stop"`. Training did not make
   * these weights: do not save them or train on.
   */
  readonly brokenReceipt: string | null;
  /** The condition of `stopWhen` that ends training; null while none does. */
  readonly conditionStop: ConditionStop | null;
  /**
   * The last step at which no condition of `stopWhen` was met, by the metric that was judged least recently; 0, where training began,
   * before each was judged. Null without conditions.
   */
  readonly cleanStep: number | null;
  /**
   * Why the run can no longer be written, and measuring has stopped: another process took over the run, or its folder is gone. Null
   * while it can. `close` throws it.
   */
  readonly lost: Error | null;
  begin(known?: { readonly maxSteps?: number | null }): Promise<Control>;
  /**
   * Calls `onStepBegin` on the weights before a step. A loop may leave it out: `stepEnd` then calls `onStepBegin`. A loop that calls
   * it changes the weights only between `stepBegin` and `stepEnd`, so that changes at other times are detected.
   */
  stepBegin(): Promise<void>;
  stepEnd(at?: StepEnd): Promise<Control>;
  /**
   * Sends metrics to loggers and `onLog`, if they are known only after `stepEnd` or after the end.
   *
   * @param step The step that the training curves show them at. Default: the last one.
   * @throws PeriodicEvalError `config` before `begin` and after `close`.
   */
  log(metrics: Readonly<Record<string, number>>, step?: number): Promise<void>;
  /**
   * Calls `onSave` and returns the state for a checkpoint of the last step, including the changes of `onSave`. First retries
   * snapshots that the store refused: a run resumed from the checkpoint does not repeat them.
   *
   * @throws PeriodicEvalError `config` before `begin`.
   */
  save(): Promise<SessionState>;
  /**
   * Tests `stopWhen` on measurements whose grading has ended since the last step, for a loop that waits between steps. `conditionStop`
   * then holds the result. `onSnapshot` receives the measurements at the next step.
   *
   * @throws PeriodicEvalError `config` for a condition that the run's start meets, and before `begin`.
   */
  testConditions(): Promise<void>;
  /** Measures what is due at the end. Returns the requests of callbacks, such as a last checkpoint. */
  end(): Promise<Control>;
  fail(error: unknown): Promise<void>;
  /**
   * Ends grading, writes the remaining snapshots, and closes callbacks, loggers and the store. May be called at any time: it
   * interrupts the measurement that is running, as an abort does, and waits for the call to end. Inside a hook it throws, because
   * a hook that awaited it would wait for itself; hooks end training with `requestStop`.
   *
   * @throws PeriodicEvalError `store` if snapshots could not be written; `config` inside a hook, and the session stays open.
   */
  close(): Promise<void>;
}
