import type { EvaluableModel, Guard, Json } from "@periodic-eval/core";
import type { HarnessConfig } from "../config/schema.ts";

/**
 * Trains models on feedback: in this process (`localEngine`) or through a service (`httpEngine`). The harness uses models only
 * through this interface.
 */
export interface FeedbackEngine {
  /** Returns the engine's name and the settings that affect results, for `metadata.json`. Without secrets. */
  describe(): Json;
  /**
   * Checks before training that the engine can be reached and has the model.
   *
   * @throws PeriodicEvalError `model` or `config`.
   */
  check?(signal: AbortSignal): Promise<void>;
  /**
   * Opens a model with an adapter of this name at its newest checkpoint, or with a new adapter, which equals the base. The
   * harness disposes the model before it opens another.
   */
  open(request: OpenRequest): Promise<FeedbackModel>;
}

export interface OpenRequest {
  /** Name of the adapter. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly loraId: string;
  readonly training: HarnessConfig["training"];
  /** Gradient steps per update. */
  readonly stepsPerBatch: number;
  /** Seed of training and of a new adapter. */
  readonly seed: number;
  /** Folder for the files of this adapter. A service uses its own folder instead. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** A model that answers and is trained. `evaluable` always has the current weights. */
export interface FeedbackModel {
  /**
   * The model for metrics, with the engine's abilities. `base`, if present, is the model without its adapter: the state before
   * any update.
   */
  readonly evaluable: EvaluableModel;
  /** Guards that check that a measurement changes nothing. */
  readonly guards?: readonly Guard[];
  /** The updates in the newest checkpoint, including those of earlier processes. */
  readonly trained: TrainedState;
  /** Samples one answer per prompt (a user turn), in order, at temperature 1 from all tokens. */
  sample(requests: readonly SampleRequest[], signal: AbortSignal): Promise<readonly FeedbackAnswer[]>;
  /**
   * Trains one update on answers with feedback and writes its checkpoint with `record`. Both happen or neither, also in a
   * crash: `trained` of the next `open` reports it.
   *
   * @throws PeriodicEvalError `model` if training diverged.
   */
  update(batch: readonly FeedbackExample[], record: UpdateRecord, signal: AbortSignal): Promise<UpdateReport>;
  dispose(): void | Promise<void>;
}

export interface TrainedState {
  /** Completed updates. */
  readonly updates: number;
  /** Record and report of the last update, from the newest checkpoint; null without a checkpoint. */
  readonly last: (UpdateRecord & { readonly report: UpdateReport }) | null;
}

export interface SampleRequest {
  readonly prompt: string;
  readonly maxNewTokens: number;
  /** Name of this answer's random stream, if the engine has named streams. */
  readonly seed: string;
}

export interface FeedbackAnswer {
  readonly text: string;
  readonly finish: "stop" | "length";
  /**
   * Data that the engine needs for training: token ids and their log p at sampling. The harness passes it back unchanged.
   */
  readonly trace: Json;
}

export interface FeedbackExample {
  readonly prompt: string;
  readonly answer: FeedbackAnswer;
  /** The user's feedback on the answer. */
  readonly feedback: string;
  /** The user turn in which the teacher reads the feedback. Null: the engine's default. */
  readonly teacherTurn: string | null;
}

/** The part of an update that its checkpoint stores: enough to write the step's line after a crash. */
export interface UpdateRecord {
  /** Id of the step, in the checkpoint and in the step's line. */
  readonly stepId: string;
  /** From 0. */
  readonly step: number;
  /** Data of the harness: the part of the step's line that is not measured. */
  readonly draft: Json;
  /** Hash of the requests, for a service: it detects a different update under the same id. */
  readonly requestsHash?: string;
}

export interface UpdateReport {
  /** Metrics of the last gradient step by name; null if the engine does not report it. */
  readonly metrics: Readonly<Record<string, number | null>>;
  /** Number of gradient steps. */
  readonly subSteps: number;
}
