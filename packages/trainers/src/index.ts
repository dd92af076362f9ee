export { crossEntropy, crossEntropySum, total } from "./losses/cross-entropy.ts";
export { tokenLosses, type ScoredTokens } from "./losses/token-losses.ts";
export { AdamW, isDecayedWithoutNorms, type AdamWOptions } from "./optimizer/adamw.ts";
export { clipFactor, GradientNorm } from "./optimizer/clipping.ts";
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
export type { Optimizer } from "./optimizer/types.ts";
export { SFTTrainer, type SFTTrainerOptions } from "./sft/sft-trainer.ts";
export { DPOTrainer, type DPOTrainerOptions } from "./dpo/dpo-trainer.ts";
export { parseDPOConfig, type DPOConfig } from "./dpo/dpo-config.ts";
export {
  SDPOTrainer,
  type SDPOMetrics,
  type SDPOSaveOptions,
  type SDPOTrainerOptions,
  type SDPOUpdate,
} from "./sdpo/sdpo-trainer.ts";
export { parseSDPOConfig, type SDPOConfig } from "./sdpo/sdpo-config.ts";
export type { SDPOExample } from "./sdpo/example.ts";
export type { Reference } from "./dpo/reference.ts";
export { Trainer, type TrainerOptions, type TrainResult } from "./trainer/trainer.ts";
export type { TrainingConfig } from "./trainer/training-config.ts";
export { parseSFTConfig, type SFTConfig } from "./sft/sft-config.ts";
export type { BestCheckpoint, SessionSettings } from "./loop/phase.ts";
export type { Resume } from "./loop/resume.ts";
export {
  checkPipeline,
  runPipeline,
  type DPOPhase,
  type PipelineOptions,
  type PipelinePhase,
  type SFTPhase,
} from "./pipeline/run-pipeline.ts";
export { checkDatasets } from "./pipeline/check-datasets.ts";
export { checkOrder } from "./pipeline/check-order.ts";
export type { OutlinedLM } from "./trainer/outlined-lm.ts";
export type { BadRow, BadRowReason } from "./data/bad-row.ts";
export type { PreferenceRow, PreferenceSource } from "./data/preference-rows.ts";
export type {
  MessagesRow,
  PromptCompletionRow,
  PromptCompletionTextRow,
  SFTRow,
  TextRow,
} from "./data/forms.ts";
export type { RowSource } from "./data/read-rows.ts";
export { loadDataset, type Dataset, type DatasetOptions, type OnBadRow } from "./data/dataset.ts";
export type { LossOn, TrainingRow } from "./data/render-row.ts";
export {
  checkpointsOf,
  type Checkpoint,
  type Checkpoints,
  type CheckpointsOptions,
} from "./checkpoint/checkpoints.ts";
export { verifyCheckpoint, type TrainerState } from "./checkpoint/trainer-state.ts";
