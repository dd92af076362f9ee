import type { AnyEvaluation } from "./evaluation.ts";
import type { Awaitable, Json } from "./json.ts";
import type { Crossing, Progress, Trigger } from "./schedule.ts";
import type { Snapshot } from "./snapshot.ts";

export interface MeasureRequest {
  /** Names the snapshot: `<id>_step_<N>.json`. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly id: string;
  readonly evaluation: AnyEvaluation;
  /** The thresholds that asked; empty for a measurement asked by hand. */
  readonly crossed: readonly Crossing[];
  /** `"base"` measures the model without its adapter. */
  readonly on?: "model" | "base";
  /** Comparisons with the baseline that the phase will make in all; null or left out where their number is not known. */
  readonly plannedLooks?: number | null;
}

/** What a hook may see and ask. It never holds the model: measuring goes through the session. */
export interface CallbackContext {
  readonly phase: string;
  readonly progress: Progress;
  /** Progress at the hook before this one; null at the begin of a phase that was not resumed. */
  readonly previous: Progress | null;
  readonly signal: AbortSignal;
  /** Metrics the loop gave with this step: loss, learning rate. Empty outside `onLog` and `onStepEnd`. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Queue a measurement for the window of this step. */
  readonly measure: (request: MeasureRequest) => void;
  requestStop(reason: string): void;
  requestSave(reason: string): void;
  /** Give numbers to the loggers, beside the loss. */
  report(metrics: Readonly<Record<string, number>>): void;
  /** Say something that a person should read; it reaches the loggers' `event`, with the callback's name. */
  warn(message: string): void;
}

export type Hook = (context: CallbackContext) => Awaitable<void>;

/**
 * The life cycle, in order. Hooks of several callbacks run in the order given; one that throws is recorded, told to
 * its `onError`, and training goes on.
 */
export interface TrainerCallback {
  /** Unique within a session; also the default name of its snapshots. */
  readonly id: string;
  /** What it may ask to measure: checked before step 1, and asked for again on a resume where an abort cut it off. */
  readonly asks?: readonly AnyEvaluation[];
  /** When it asks under its own id, where it goes by a schedule: the session keeps time for what is still to come. */
  readonly triggers?: readonly Trigger[];
  /** The model that `asks` are checked against: with its adapter (default) or without. */
  readonly on?: "model" | "base";
  /** A missing or unreadable data file becomes one warning and a `skipped` record instead of an error before step 1. */
  readonly optional?: boolean;
  /** Once per phase, after the preflight, before the first step or the first step after a resume. */
  onTrainBegin?: Hook;
  /** When an epoch starts. */
  onEpochBegin?: Hook;
  /** When `epoch` passes a whole number. */
  onEpochEnd?: Hook;
  /**
   * Before a step's forward pass where the loop tells (`session.stepBegin`), as our trainers do; else once a step with its
   * `stepEnd`, before `onStepEnd`, the weights being those after the step.
   */
  onStepBegin?: Hook;
  /** After the optimizer changed the weights; the usual place to ask for a measurement. */
  onStepEnd?: Hook;
  /** When the loop gave metrics with the step. */
  onLog?: Hook;
  /** Before the session's state is taken for a checkpoint; what it changes is in the `state` of this callback. */
  onSave?: Hook;
  /** Once, after the last step or an abort, while measuring is still possible; `progress.ended` tells which. */
  onTrainEnd?: Hook;
  /** After a snapshot of any callback was written, and again when its grading is done. */
  onSnapshot?(context: CallbackContext, snapshot: Snapshot): Awaitable<void>;
  /** After a hook of this callback or an evaluation it asked for threw, or training itself failed. */
  onError?(context: CallbackContext, error: unknown): Awaitable<void>;
  /** Always called, last, whatever happened. */
  close?(): Awaitable<void>;
  /**
   * What a checkpoint should carry; firing state is not needed, it is read from the snapshots. Where it throws, or gives
   * what JSON cannot hold, the checkpoint has what it gave before.
   */
  state?(): Json;
  restore?(state: Json): void;
}
