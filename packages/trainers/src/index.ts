export { crossEntropy, crossEntropySum, total } from "./losses/token-losses.ts";
export { tokenLosses, type ScoredTokens } from "./losses/token-losses.ts";
export { AdamW, isDecayedWithoutNorms, type AdamWOptions } from "./optimizer/adamw.ts";
export { clipFactor, GradientNorm } from "./optimizer/adamw.ts";
export {
  constant,
  cosine,
  learningRates,
  linear,
  wsd,
  type DecayType,
  type LearningRate,
  type LearningRateName,
  type LearningRateOptions,
  type WsdOptions,
} from "./optimizer/learning-rate.ts";
export type { Optimizer } from "./optimizer/adamw.ts";
export { SFTTrainer, type SFTTrainerOptions } from "./sft/sft-trainer.ts";
export { DPOTrainer, type DPOTrainerOptions } from "./dpo/dpo-trainer.ts";
export { dpoConfigJsonSchema, parseDPOConfig, type DPOConfig } from "./dpo/dpo-config.ts";
export { SDPOTrainer } from "./sdpo/sdpo-trainer.ts";
export type { SDPOMetrics, SDPOSaveOptions, SDPOTrainerOptions, SDPOUpdate } from "./sdpo/sdpo-config.ts";
export { parseSDPOConfig, type SDPOConfig } from "./sdpo/sdpo-config.ts";
export type { SDPOExample } from "./sdpo/example.ts";
export type { Reference } from "./dpo/reference.ts";
export { Trainer, type TrainResult } from "./trainer/trainer.ts";
export {
  estimateTrainingMemory,
  type EstimatedLM,
  type TrainingMemory,
  type TrainingSize,
} from "./trainer/training-memory.ts";
export type { MeasureOn } from "./measuring/measure-on.ts";
export type { TrainerOptions } from "./trainer/trainer-options.ts";
export type { TrainingConfig } from "./trainer/training-config.ts";
export { sftConfigJsonSchema, parseSFTConfig, type SFTConfig } from "./sft/sft-config.ts";
export type { BestCheckpoint, SessionSettings } from "./loop/phase.ts";
export type { Resume } from "./loop/learner.ts";
export { runPipeline } from "./pipeline/run-pipeline.ts";
export type { DPOPhase, PipelineOptions, PipelinePhase, SFTPhase } from "./pipeline/phases.ts";
export { checkOrder, countSteps, phaseErrors, type CountOptions } from "./pipeline/check-pipeline.ts";
export type { OutlinedLM } from "./trainer/checks.ts";
export type { BadRow, BadRowReason } from "./data/bad-row.ts";
export type { PreferenceRow, PreferenceSource } from "./data/preference-rows.ts";
export type { TemplateColumns } from "./data/messages.ts";
export type {
  ConversationsRow,
  MessagesRow,
  PromptCompletionRow,
  PromptCompletionTextRow,
  SFTRow,
  TextRow,
} from "./data/forms.ts";
export { readRowsUnchanged, type RowSource } from "./data/read-rows.ts";
export { formatRow, type SourceRow } from "./data/json-rows.ts";
export { loadDataset, type Dataset, type DatasetOptions, type OnBadRow } from "./data/dataset.ts";
export type { LossOn, TrainingRow } from "./data/render-row.ts";
export {
  checkpointsOf,
  type Checkpoint,
  type Checkpoints,
  type CheckpointsOptions,
} from "./checkpoint/checkpoints.ts";
export { verifyCheckpoint, type TrainerState } from "./checkpoint/trainer-state.ts";
