import type { EvaluableModel, Guard, Json } from "@periodic-eval/core";
import type { HarnessConfig } from "../config/schema.ts";

/**
 * Trains models on feedback, in this process (`localEngine`) or through a service (`httpEngine`). The harness uses models only
 * through this interface.
 */
export interface FeedbackEngine {
  /** Returns the engine's name and the settings that affect results, for `metadata.json`, without secrets. */
  describe(): Json;
  /**
   * Checks before training that the engine can be reached and has the model.
   *
   * @throws PeriodicEvalError `model` or `config`.
   */
  check?(signal: AbortSignal): Promise<void>;
  /**
   * Opens a model with the named adapter at its newest checkpoint, or with a new adapter, which does not change the base. The
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
  /** The description of the engine that began this run. Null or absent: the run begins now. */
  readonly earlier?: Json | null;
  /** Whether the examples have a `teacherTurn`. Default false. */
  readonly hasTeacherTurns?: boolean;
  readonly signal: AbortSignal;
}

/** A model in training. `evaluable` always has the current weights. */
export interface FeedbackModel {
  /**
   * The model for metrics, with the engine's abilities. `base`, if present, is the model without its adapter: the state before
   * any update.
   */
  readonly evaluable: EvaluableModel;
  /** Name of the adapter, if the engine chose another one than the request's. */
  readonly loraId?: string;
  /** Facts that the engine does not report, such as `updates` (the adapter's number of updates), each with the reason. */
  readonly unknown?: Readonly<Record<string, string>>;
  /** The template of the teacher's turn for examples without a `teacherTurn`, if the engine knows it. */
  readonly hindsight?: string;
  /** Guards that check that a measurement changes nothing. */
  readonly guards?: readonly Guard[];
  /** The updates in the newest checkpoint, including those of earlier processes. */
  readonly trained: TrainedState;
  /** Samples one answer per prompt (a user turn), in order, at temperature 1 from the whole distribution. */
  sample(requests: readonly SampleRequest[], signal: AbortSignal): Promise<readonly FeedbackAnswer[]>;
  /**
   * Trains one update on answers with feedback and writes its checkpoint with `record`. Even in a crash, either both
   * happen or neither does. `trained` of the next `open` reports the update.
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
  /** What the engine needs for training, such as token ids and their log p when sampled. The harness passes it back unchanged. */
  readonly trace?: Json;
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
  /** Id of the step. The checkpoint and the step's line contain it. */
  readonly stepId: string;
  /** 0-based. */
  readonly step: number;
  /** The part of the step's line that is not measured. The engine only stores it. */
  readonly draft: Json;
}

export interface UpdateReport {
  /** Metrics of the last gradient step by name; null if the engine does not report it. */
  readonly metrics: Readonly<Record<string, number | null>>;
  /** Number of gradient steps; null if the reply to one of them was lost. */
  readonly subSteps: number | null;
  /** The reason for each metric that is null, and for a null `subSteps` (`sub_step_count`). */
  readonly unknown?: Readonly<Record<string, string>>;
}
