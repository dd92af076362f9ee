export {
  PeriodicEvalError,
  type ErrorCode,
  type ErrorDetail,
  type ErrorDetails,
  type SourceOption,
  type ValuePath,
} from "./errors.ts";

export type { AnswerCondition, AnswerFields } from "./contracts/answer-fields.ts";
export type * from "./contracts/callback.ts";
export type * from "./contracts/checkpoint.ts";
export type * from "./contracts/evaluation.ts";
export type * from "./contracts/grading.ts";
export type * from "./contracts/guard.ts";
export type * from "./contracts/json.ts";
export type * from "./contracts/model.ts";
export type * from "./contracts/schedule.ts";
export type * from "./contracts/session.ts";
export type {
  Evidence,
  Layout,
  MeasurementWarning,
  MetricValue,
  Paired,
  Snapshot,
  SnapshotKey,
  SnapshotStatus,
  SnapshotStore,
} from "./contracts/snapshot.ts";

export { openSession, withSession } from "./session/loop/session.ts";
export { measure, type MeasureOptions } from "./session/window/measure.ts";

export { bulkTokenizer } from "./model/bulk-tokenizer.ts";

export { PeriodicCallback, type PeriodicOptions } from "./callback/periodic-callback.ts";
export { earlyStopping, type EarlyStoppingOptions } from "./callback/watch-metric.ts";
export { escalate, worse, type EscalateOptions } from "./callback/escalate.ts";
export { markBest, type MarkBestOptions } from "./callback/watch-metric.ts";
export type { Best } from "./callback/watch-metric.ts";
export * from "./schedule/triggers.ts";
export { streamGuard } from "./guard/randomness.ts";

export { defineEvaluation } from "./evaluations/kit/define.ts";
export {
  PeriodicCapabilityCallback,
  type PeriodicCapabilityOptions,
} from "./evaluations/capability/callback.ts";
export { capabilityEvaluation } from "./evaluations/capability/evaluation.ts";
export type { CapabilityOptions } from "./evaluations/capability/options.ts";
export {
  PeriodicAlignmentCallback,
  type PeriodicAlignmentOptions,
} from "./evaluations/alignment/callback.ts";
export { alignmentEvaluation } from "./evaluations/alignment/evaluation.ts";
export type { AlignmentOptions } from "./evaluations/alignment/options.ts";
export { PeriodicLeakageCallback, type PeriodicLeakageOptions } from "./evaluations/leakage/callback.ts";
export { leakageEvaluation } from "./evaluations/leakage/evaluation.ts";
export type { LeakageOptions } from "./evaluations/leakage/options.ts";
export { leakageQuestions } from "./evaluations/leakage/questions.ts";
export { PeriodicMarginCallback, type PeriodicMarginOptions } from "./evaluations/margin/callback.ts";
export { marginEvaluation } from "./evaluations/margin/evaluation.ts";
export type { MarginOptions } from "./evaluations/margin/options.ts";
export { PeriodicKLCallback, type PeriodicKLOptions } from "./evaluations/kl/callback.ts";
export { klEvaluation } from "./evaluations/kl/evaluation.ts";
export type { KLOptions } from "./evaluations/kl/options.ts";

export { judgeGrader, type JudgeGrader } from "./grading/judge/judge-grader.ts";
export type { JudgeOptions } from "./grading/judge/options.ts";
export { ruleGrader, type RuleGraderOptions } from "./grading/rule-grader.ts";
export { verifierGrader } from "./grading/verifier.ts";
export { permutationTest } from "./statistics/permutation.ts";

export type { PeriodicEvalBlock, PeriodicEvalConfig, PhaseEvalConfig } from "./config/block/config-schema.ts";
export type { CallbackBlockOptions } from "./config/block/callback-parts.ts";
export type { ConfiguredJudge, OpenJudge } from "./config/block/judge.ts";
export type { EvaluationMaker, EvaluationRegistry } from "./config/configured-evaluations.ts";
export {
  buildPeriodicCallbacks,
  buildPeriodicEval,
  type BuildOptions,
  type PeriodicEval,
} from "./config/build-callbacks.ts";
export { periodicEvalConfig, type PeriodicEvalInput } from "./config/block/parse-config.ts";
