import type { Json, Session, SessionOptions } from "@periodic-eval/core";
import type { TrainableLM } from "@periodic-eval/core/tfjs";
import type { Checkpoint, Checkpoints } from "../checkpoint/checkpoints.ts";
import type { PhaseStart } from "../checkpoint/trainer-state.ts";
import type { GradientNorm } from "../optimizer/clipping.ts";
import type { LearningRate } from "../optimizer/learning-rate.ts";
import type { Optimizer } from "../optimizer/types.ts";
import type { StepWork } from "./types.ts";
import type { Validation } from "./validation.ts";

/** Everything that the loop needs of a phase, whatever the loss. */
export interface Phase {
  readonly name: string;
  readonly maxSteps: number;
  readonly stepsPerEpoch: number;
  readonly model: TrainableLM;
  readonly optimizer: Optimizer;
  readonly gradientNorm: GradientNorm;
  readonly learningRate: LearningRate;
  readonly checkpoints: Checkpoints;
  /** Null where nothing is held out. */
  readonly validation: Validation | null;
  readonly signal: AbortSignal | null;
  readonly config: PhaseConfig;
  /** Seconds from an arbitrary origin. */
  readonly clock: () => number;
  /** What it begins from; undefined where nobody said what came before. */
  readonly start: PhaseStart | undefined;
  /** What must be the same for a resume after this many steps to be exact. */
  exact(step: number): Readonly<Record<string, Json>>;
  /** What the step after `step` completed ones learns from; depends on nothing else. */
  work(step: number): StepWork;
  warn(where: string, message: string): void;
}

export interface PhaseConfig {
  readonly maxGradNorm: number | null;
  readonly onNonFinite: "error" | "skip";
  readonly maxSkippedInARow: number | null;
  readonly evalSteps: number | null;
  readonly keepBest: string | null;
  readonly saveSteps: number | null;
  readonly logSteps: number;
  readonly seed: number | string;
}

/** Options of a session that a trainer hands on as they are. */
export type SessionSettings = Pick<
  SessionOptions,
  | "onFailure"
  | "onBrokenReceipt"
  | "budget"
  | "saveAtFiring"
  | "baseline"
  | "familywise"
  | "layout"
  | "clock"
  | "now"
>;

export const sessionSettings = [
  "onFailure",
  "onBrokenReceipt",
  "budget",
  "saveAtFiring",
  "baseline",
  "familywise",
  "layout",
  "clock",
  "now",
] as const satisfies readonly (keyof SessionSettings)[];

export interface PhaseResult {
  readonly phase: string;
  /** Completed optimizer steps of the phase, those before a resume included. */
  readonly steps: number;
  readonly maxSteps: number;
  /** Passes over the data, with fractions. */
  readonly epochs: number;
  /** Of the last update that was made: of SFT the mean NLL of scored tokens, in nats; of DPO the mean over pairs. Null where none was. */
  readonly finalLoss: number | null;
  /** Why training ended before `maxSteps`; null where it did not. */
  readonly stopReason: string | null;
  /**
   * What a guard saw disturbed by measuring, which ended training; null where nothing was. The model's weights are then
   * not those that training made; `checkpoint` is from before.
   */
  readonly brokenReceipt: string | null;
  /** The step of the checkpoint that training went on from; null where it began anew. */
  readonly resumedFrom: number | null;
  /** Updates of the phase left out for a loss or norm of NaN or Inf. */
  readonly skippedUpdates: number;
  /** The last checkpoint's folder; null where training was stopped before the first. */
  readonly checkpoint: string | null;
  /** What `keepBest` kept; null where nothing was validated. */
  readonly best: BestCheckpoint | null;
}

export interface BestCheckpoint {
  /** `eval_loss`, say. */
  readonly metric: string;
  readonly value: number;
  /** Completed optimizer steps. */
  readonly step: number;
  /** Its folder. */
  readonly checkpoint: string;
}

export interface RunningPhase {
  readonly phase: Phase;
  readonly session: Session;
  readonly resumed: Checkpoint | null;
}
