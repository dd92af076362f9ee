export { PeriodicEvalError } from "@periodic-eval/contracts";
export type * from "@periodic-eval/contracts";

export { openSession, withSession } from "./session/loop/session.ts";
export { measure, type MeasureOptions } from "./session/window/measure.ts";

export { bulkTokenizer } from "./model/bulk-tokenizer.ts";

export { PeriodicCallback, type PeriodicOptions } from "./callback/periodic-callback.ts";
export {
  earlyStopping,
  escalate,
  markBest,
  worse,
  type Best,
  type EarlyStoppingOptions,
  type EscalateOptions,
  type MarkBestOptions,
} from "./callback/reactions.ts";
export {
  atEnd,
  atPercents,
  atStart,
  atSteps,
  everyEpochs,
  everyPercent,
  everySeconds,
  everySteps,
  timesPerPhase,
} from "./schedule/triggers.ts";
export { streamGuard } from "./random/guards.ts";

export { defineEvaluation } from "./evaluations/kit/define.ts";
export { capabilityEvaluation, type CapabilityOptions } from "./evaluations/capability/evaluation.ts";
export { alignmentEvaluation } from "./evaluations/alignment/evaluation.ts";
export type { AlignmentOptions } from "./evaluations/alignment/options.ts";
export { leakageEvaluation, type LeakageOptions } from "./evaluations/leakage/evaluation.ts";
export { leakageQuestions } from "./evaluations/leakage/questions.ts";
export { forgettingEvaluation, type ForgettingOptions } from "./evaluations/forgetting/evaluation.ts";
export { PeriodicTraitsCallback, type PeriodicTraitsOptions } from "./config/traits-callback.ts";
export { traitsEvaluation, type TraitsOptions } from "./evaluations/traits/evaluation.ts";
export { memorizationEvaluation, type MemorizationOptions } from "./evaluations/memorization/evaluation.ts";
export { withCanaries, type CanaryOptions, type CanaryRow } from "./evaluations/memorization/canaries.ts";
export { sycophancyEvaluation, type SycophancyOptions } from "./evaluations/sycophancy/evaluation.ts";
export { refusalEvaluation, type RefusalOptions } from "./evaluations/refusal/evaluation.ts";
export { marginEvaluation, type MarginOptions } from "./evaluations/margin/evaluation.ts";
export { klEvaluation, type KLOptions } from "./evaluations/kl/evaluation.ts";

export { judgeGrader, type JudgeGrader } from "./grading/judge/judge-grader.ts";
export type { JudgeOptions } from "./grading/judge/options.ts";
export type { GraderSource } from "./grading/grader-schema.ts";
export { ruleGrader, type RuleGraderOptions } from "./grading/rule-grader.ts";
export { verifierGrader } from "./grading/verifier.ts";
export { permutationTest } from "./statistics/permutation.ts";

export {
  PeriodicAlignmentCallback,
  PeriodicCapabilityCallback,
  PeriodicForgettingCallback,
  PeriodicKLCallback,
  PeriodicLeakageCallback,
  PeriodicMarginCallback,
  PeriodicMemorizationCallback,
  PeriodicRefusalCallback,
  PeriodicSycophancyCallback,
  type PeriodicAlignmentOptions,
  type PeriodicCapabilityOptions,
  type PeriodicForgettingOptions,
  type PeriodicKLOptions,
  type PeriodicLeakageOptions,
  type PeriodicMarginOptions,
  type PeriodicMemorizationOptions,
  type PeriodicRefusalOptions,
  type PeriodicSycophancyOptions,
} from "./config/callbacks.ts";
export type { CallbackBlockOptions } from "./config/callback-form.ts";
export type { PeriodicEvalBlock, PeriodicEvalConfig, PhaseEvalConfig } from "./config/config-schema.ts";
export type { ConfiguredJudge, OpenJudge } from "./config/block-judge.ts";
export type { EvaluationMaker, EvaluationRegistry } from "./config/build-callbacks.ts";
export {
  buildPeriodicCallbacks,
  buildPeriodicEval,
  type BuildOptions,
  type PeriodicEval,
} from "./config/build-callbacks.ts";
export { periodicEvalConfig, type PeriodicEvalInput } from "./config/parse-config.ts";
