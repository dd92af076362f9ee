export { type AnswerCondition, type AnswerFields } from "./answer-fields.ts";
export { type CallbackContext, type Hook, type MeasureRequest, type TrainerCallback } from "./callback.ts";
export { type OpenCheckpoint, type OpenCheckpointOptions, type OpenedModel } from "./checkpoint.ts";
export {
  PeriodicEvalError,
  type ErrorCode,
  type ErrorDetail,
  type ErrorDetails,
  type SourceOption,
  type ValuePath,
} from "./errors.ts";
export {
  type AnyEvaluation,
  type Evaluation,
  type MeasureContext,
  type Metric,
  type MetricKit,
  type MetricOptions,
  type Observation,
  type Range,
  type SampleRange,
} from "./evaluation.ts";
export { evidenceSchema, type Evidence } from "./evidence.ts";
export {
  type Anchor,
  type GradeRequest,
  type Grader,
  type Verdict,
  type VerdictSpending,
} from "./grading.ts";
export { grouped, groupsOf } from "./grouping.ts";
export { type EnteredGuard, type Guard, type GuardContext } from "./guard.ts";
export { canonicalJson, createHasher, hashBytes, hashJson, hashText, type Hasher } from "./hash.ts";
export { type Awaitable, type Json } from "./json.ts";
export { type MeasurementWarning } from "./measurement-warning.ts";
export {
  type Abilities,
  type Ability,
  type CallOptions,
  type ChatEnding,
  type Completion,
  type EvaluableModel,
  type GenerateRequest,
  type LogLikelihood,
  type LogLikelihoodRequest,
  type Message,
  type ModelIdentity,
  type ModelWith,
  type NextToken,
  type NextTokenRequest,
  type Prompt,
  type RenderedPrompt,
  type RequestEnded,
  type Sampling,
  type SystemPrompt,
  type TemplateChat,
  type TemplateKwargs,
  type TemplateMessage,
  type Tokenizer,
  type TopToken,
  type Usage,
} from "./model.ts";
export {
  type PhaseRecord,
  type ReceiptSummary,
  type RunRecord,
  type Series,
  type SeriesPoint,
  type SupersededFile,
  type Undisturbed,
  type Writer,
} from "./run-record.ts";
export { type Crossing, type Progress, type Trigger } from "./schedule.ts";
export {
  type Budget,
  type Control,
  type InterruptedMeasurement,
  type Logger,
  type MeasurementPace,
  type PhaseBegin,
  type PhaseEnd,
  type RunProgress,
  type Session,
  type SessionEvent,
  type SessionOptions,
  type SessionState,
  type StepEnd,
  type WindowPlace,
} from "./session.ts";
export {
  namePattern,
  nameSchema,
  snapshotSchema,
  type BudgetLimit,
  type Layout,
  type MetricValue,
  type Paired,
  type PhaseClosing,
  type Row,
  type RunProblem,
  type Snapshot,
  type SnapshotKey,
  type SnapshotStatus,
  type SnapshotStore,
  type TrainingPoint,
} from "./snapshot.ts";
export { isCacheable, memoryVerdictCache, type VerdictCache } from "./verdict-cache.ts";
