import type { EvaluableModel, Guard, Json } from "@periodic-eval/core";
import type { HarnessConfig } from "../config/schema.ts";

/**
 * What trains on feedback: in this process (`localEngine`), or a service behind an address. The harness knows no other way to
 * a model: all that it asks stands here.
 */
export interface FeedbackEngine {
  /** For `metadata.json`: the engine's name and what of it can change a number. Nothing secret. */
  describe(): Json;
  /**
   * Looks, before anything is trained, whether the engine can be reached and has the model.
   *
   * @throws PeriodicEvalError `model` or `config` where not.
   */
  check?(signal: AbortSignal): Promise<void>;
  /**
   * A model with an adapter of this name, at its newest checkpoint, or new (the base itself) where it has none. One model is
   * open at a time; the harness disposes of it before it opens another.
   */
  open(request: OpenRequest): Promise<FeedbackModel>;
}

export interface OpenRequest {
  /** Names the adapter. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly loraId: string;
  readonly training: HarnessConfig["training"];
  /** Gradient steps of each update. */
  readonly stepsPerBatch: number;
  /** Of all that is random in training, and of a new adapter. */
  readonly seed: number;
  /** Where an engine that keeps files keeps those of this adapter; a service keeps its own. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** A model that is asked and trained. What `evaluable` measures is what `update` has made of it so far. */
export interface FeedbackModel {
  /**
   * As metrics measure it, with the abilities that the engine has. `base`, where it is there, is the model without its
   * adapter: the state before any update.
   */
  readonly evaluable: EvaluableModel;
  /** For looks at the model: what sees that measuring changes nothing. */
  readonly guards?: readonly Guard[];
  /** The updates that its newest checkpoint has, those of earlier processes included. */
  readonly trained: TrainedState;
  /** Answers to prompts, a user turn each, drawn at temperature 1 from all tokens: one for each, in order. */
  sample(requests: readonly SampleRequest[], signal: AbortSignal): Promise<readonly FeedbackAnswer[]>;
  /**
   * One update on answers that were told something, and its checkpoint, which keeps `record`: both are done, or neither, when
   * it returns; and after a crash too, as `trained` of the next `open` tells.
   *
   * @throws PeriodicEvalError `model` where training diverged.
   */
  update(batch: readonly FeedbackExample[], record: UpdateRecord, signal: AbortSignal): Promise<UpdateReport>;
  dispose(): void | Promise<void>;
}

export interface TrainedState {
  /** Completed updates. */
  readonly updates: number;
  /** What the newest checkpoint keeps of its update, with what that reported; null where there is no checkpoint. */
  readonly last: (UpdateRecord & { readonly report: UpdateReport }) | null;
}

export interface SampleRequest {
  readonly prompt: string;
  readonly maxNewTokens: number;
  /** Names this answer's own random stream, where the engine has such. */
  readonly seed: string;
}

export interface FeedbackAnswer {
  readonly text: string;
  readonly finish: "stop" | "length";
  /**
   * What the engine needs to learn from this answer: token ids and their log p when they were drawn, or the service's name
   * for it. The harness hands it back unread.
   */
  readonly trace: Json;
}

export interface FeedbackExample {
  readonly prompt: string;
  readonly answer: FeedbackAnswer;
  /** What the user says to the answer. */
  readonly feedback: string;
  /** The user turn in which the teacher reads it; null: as the engine does by itself. */
  readonly teacherTurn: string | null;
}

/** What a checkpoint keeps of the update that it ends with: enough to write the step's line that a crash kept from being written. */
export interface UpdateRecord {
  /** Names the step, in the checkpoint and in its line. */
  readonly stepId: string;
  /** From 0. */
  readonly step: number;
  /** Of the harness: what the line holds beside what is measured. */
  readonly draft: Json;
  /** Of a service: the hash of the requests that it was trained on, by which another update under its name is known. */
  readonly requestsHash?: string;
}

export interface UpdateReport {
  /** By name, of the last gradient step; null where the engine does not tell. */
  readonly metrics: Readonly<Record<string, number | null>>;
  /** Gradient steps that it took. */
  readonly subSteps: number;
}
