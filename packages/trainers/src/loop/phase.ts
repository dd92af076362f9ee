import type { ConditionStop, Session, SessionOptions } from "@periodic-eval/core";
import type { Checkpoint } from "../checkpoint/checkpoints.ts";
import type { LearningRate } from "../optimizer/learning-rate.ts";
import type { Learner, ResumeConditions } from "./learner.ts";
import type { StepWork, Validation } from "./training-data.ts";

/** Everything that the training loop needs of a phase, independent of the loss. */
export interface Phase extends ResumeConditions {
  readonly name: string;
  readonly maxSteps: number;
  readonly stepsPerEpoch: number;
  readonly learner: Learner;
  readonly learningRate: LearningRate;
  /** Null if no rows are held out. */
  readonly validation: Validation | null;
  readonly signal: AbortSignal | null;
  readonly config: PhaseConfig;
  /** Seconds from an arbitrary origin. */
  readonly clock: () => number;
  /** Returns the data of the step after `step` completed ones. Depends on nothing else. */
  work(step: number): StepWork;
  warn(where: string, message: string): void;
  /** Returns the error to throw for an error of a step: a `memory` error if the backend ran out of memory. */
  explain(error: unknown, doing: string): unknown;
}

export interface PhaseConfig {
  readonly onNonFinite: "error" | "skip";
  readonly maxSkippedInARow: number | null;
  readonly evalSteps: number | null;
  readonly keepBest: string | null;
  readonly restore: "last_clean" | null;
  readonly saveSteps: number | null;
  readonly logSteps: number;
}

/** Session options that a trainer passes on unchanged. */
export type SessionSettings = Pick<
  SessionOptions,
  | "onFailure"
  | "onBrokenReceipt"
  | "patienceSeconds"
  | "budget"
  | "saveAtFiring"
  | "baseline"
  | "familywise"
  | "stopWhen"
  | "layout"
  | "clock"
  | "now"
>;

export interface PhaseResult {
  readonly phase: string;
  /** Completed optimizer steps of the phase, those before a resume included. */
  readonly steps: number;
  readonly maxSteps: number;
  /** Passes over the data, with fractions. */
  readonly epochs: number;
  /**
   * Loss of the last applied update: for SFT the mean NLL of scored tokens, in nats; for DPO the mean over pairs. Null before
   * the first update.
   */
  readonly finalLoss: number | null;
  /** Why training ended before `maxSteps`; null if it did not. */
  readonly stopReason: string | null;
  /**
   * The disturbance by measuring that a guard detected and that ended training; null if there was none. The model's weights
   * are then not those that training made; `checkpoint` is older than the disturbance.
   */
  readonly brokenReceipt: string | null;
  /** The step of the checkpoint that training resumed from; null if it started from the beginning. */
  readonly resumedFrom: number | null;
  /** Updates of the phase that were skipped because the loss or norm was NaN or Inf. */
  readonly skippedUpdates: number;
  /** Folder of the last checkpoint; null if training stopped before the first. */
  readonly checkpoint: string | null;
  /** The checkpoint that `keepBest` kept; null without validation. */
  readonly best: BestCheckpoint | null;
  /** The condition of `stopWhen` that ended training; null if none did. */
  readonly conditionStop: ConditionStop | null;
  /** The newest checkpoint at or before the step up to which no condition was met; null if there is none. */
  readonly lastClean: { readonly step: number; readonly checkpoint: string } | null;
  /** Whether the model has the weights of `lastClean` instead of the last ones (`restore`). */
  readonly isRestored: boolean;
}

export interface BestCheckpoint {
  /** For example `eval_loss`. */
  readonly metric: string;
  readonly value: number;
  /** Completed optimizer steps. */
  readonly step: number;
  /** Folder of the checkpoint. */
  readonly checkpoint: string;
}

export interface RunningPhase {
  readonly phase: Phase;
  readonly session: Session;
  readonly resumed: Checkpoint | null;
}
