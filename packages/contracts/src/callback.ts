import type { AnyEvaluation } from "./evaluation.ts";
import type { Awaitable, Json } from "./json.ts";
import type { Row, Snapshot, SnapshotKey } from "./snapshot.ts";

/** How far the training of a phase has come. */
export interface Progress {
  /** Completed optimizer steps of the phase: 0 before the first. Gradient accumulation is folded in. */
  readonly step: number;
  /** Optimizer steps of the whole phase; null if unknown. */
  readonly maxSteps: number | null;
  /** Completed passes over the data, with fractions: 0 before the first. */
  readonly epoch: number;
  /** Seconds of training, without windows: 0 at the start of the phase. A resumed phase continues the count. */
  readonly elapsedSeconds: number;
  /** Whether training is over, whatever step it reached. An aborted phase is not over: it may be resumed. */
  readonly ended: boolean;
  /**
   * The largest share of the phase so far, step ÷ maxSteps, each as known at its time. It keeps a percent from being crossed twice
   * when maxSteps grows. Set by `advance`; omitted while maxSteps was never known.
   */
  readonly furthest?: { readonly step: number; readonly maxSteps: number };
}

/** A schedule rule, as plain data. A schedule is an array of them, in YAML too. */
export type Trigger =
  | { readonly every: number; readonly unit: "percent" | "steps" | "epochs" | "seconds" }
  | { readonly times: number; readonly per: "phase" }
  | { readonly at: readonly number[]; readonly unit: "percent" | "steps" }
  | { readonly at: "start" | "end" };

/**
 * A threshold that lies in (previous progress, current progress]. `at` is in the trigger's unit (k for the k-th of `times` per
 * phase), 0 for start, null for an end.
 */
export interface Crossing {
  readonly trigger: Trigger;
  readonly at: number | null;
}

/** A request to measure an evaluation at the current step. */
export interface MeasureRequest {
  /** Names the snapshot: `<id>_step_<N>.json`. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly id: string;
  readonly evaluation: AnyEvaluation;
  /** The thresholds that were crossed; empty for a request without a schedule. */
  readonly crossed: readonly Crossing[];
  /** `"base"` measures the model without its adapter. */
  readonly on?: "model" | "base";
  /** Comparisons with the baseline that the phase will make in all; null or omitted if unknown. */
  readonly plannedComparisons?: number | null;
}

/**
 * The state that a hook can read, and the requests that it can make. The model is not in it: the session measures.
 */
export interface CallbackContext {
  readonly phase: string;
  readonly progress: Progress;
  /** Progress at the hook before this one; null at the start of a phase that was not resumed. */
  readonly previous: Progress | null;
  readonly signal: AbortSignal;
  /** Metrics of this step from the loop, such as loss and learning rate. Empty outside `onLog` and `onStepEnd`. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Returns the rows of a snapshot of this run; rejects if they cannot be read. */
  readonly rows: (key: SnapshotKey) => Promise<readonly Row[]>;
  /** Requests a measurement in the window of this step. */
  readonly measure: (request: MeasureRequest) => void;
  requestStop(reason: string): void;
  requestSave(reason: string): void;
  /** Sends numbers to the loggers, beside the loss. */
  report(metrics: Readonly<Record<string, number>>): void;
  /** Logs a warning with the callback's name. */
  warn(message: string): void;
}

export type Hook = (context: CallbackContext) => Awaitable<void>;

/**
 * The hooks of a training, in the order in which they are called. Hooks of several callbacks run in the order of the callbacks.
 * If one throws, or leaves a promise behind that rejects, the error is logged, and training continues; `onError` receives what a
 * hook threw. A hook that does not settle is abandoned after `SessionOptions.patienceSeconds`.
 */
export interface TrainerCallback {
  /** Unique within a session; also the default name of its snapshots. */
  readonly id: string;
  /** The evaluations that it may request. They are checked before step 1; a resumed session requests interrupted ones again. */
  readonly asks?: readonly AnyEvaluation[];
  /** Its schedule, if it requests under its own id: the session reserves time for measurements that are still to come. */
  readonly triggers?: readonly Trigger[];
  /** The model that `asks` are checked against: with its adapter (default) or without. */
  readonly on?: "model" | "base";
  /** Called once per phase, after the preflight, before the first step or the first step after a resume. */
  onTrainBegin?: Hook;
  /** Called when an epoch starts. */
  onEpochBegin?: Hook;
  /** Called when `epoch` passes an integer. */
  onEpochEnd?: Hook;
  /**
   * Called before a step's forward pass if the loop calls `session.stepBegin`, as our trainers do. Otherwise called by `stepEnd`,
   * before `onStepEnd`, with the weights after the step.
   */
  onStepBegin?: Hook;
  /** Called after the optimizer changed the weights. The usual place to request a measurement. */
  onStepEnd?: Hook;
  /** Called if the loop gave metrics with the step. */
  onLog?: Hook;
  /** Called before the session's state is read for a checkpoint, so that `state` includes its changes. */
  onSave?: Hook;
  /** Called once, after the last step (`progress.ended` is true) or an abort. Measuring is still possible. */
  onTrainEnd?: Hook;
  /**
   * Called after a snapshot of any callback was written, and again when its grading is done. A `config` error that it throws before the
   * run's first step is an error of `begin`.
   */
  onSnapshot?(context: CallbackContext, snapshot: Snapshot): Awaitable<void>;
  /** Called after a hook of this callback or an evaluation that it requested threw, or after training failed. */
  onError?(context: CallbackContext, error: unknown): Awaitable<void>;
  /** Always called last, whatever happened. */
  close?(): Awaitable<void>;
  /**
   * Returns the state to save in a checkpoint. Crossed thresholds need not be saved: the session reads them from the snapshots.
   * If it throws or returns something that JSON cannot hold, the checkpoint holds the previous state.
   */
  state?(): Json;
  /** Called before the first step of a resumed phase, with the state that the checkpoint holds. */
  restore?(state: Json): void;
}
