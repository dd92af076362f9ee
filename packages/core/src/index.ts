export { PeriodicEvalError } from "@periodic-eval/contracts";
export type * from "@periodic-eval/contracts";

export { openSession, withSession } from "./session/loop/session.ts";
export { measure, type MeasureOptions } from "./session/window/measure.ts";

export { bulkTokenizer } from "./model/bulk-tokenizer.ts";

export { PeriodicCallback, type PeriodicOptions } from "./callback/periodic-callback.ts";
export { earlyStopping, type EarlyStoppingOptions } from "./callback/reactions.ts";
export { escalate, worse, type EscalateOptions } from "./callback/reactions.ts";
export { markBest, type MarkBestOptions } from "./callback/reactions.ts";
export type { Best } from "./callback/reactions.ts";
export {
  atEnd,
  atPercents,
  atStart,
  atSteps,
  describeCrossing,
  everyEpochs,
  everyPercent,
  everySeconds,
  everySteps,
  needsMaxSteps,
  timesPerPhase,
} from "./schedule/triggers.ts";
export { streamGuard } from "./random/streams.ts";

export { defineEvaluation } from "./evaluations/kit/define.ts";
export { PeriodicCapabilityCallback, type PeriodicCapabilityOptions } from "./config/callbacks.ts";
export { capabilityEvaluation } from "./evaluations/capability/evaluation.ts";
export type { CapabilityOptions } from "./evaluations/capability/evaluation.ts";
export { PeriodicAlignmentCallback, type PeriodicAlignmentOptions } from "./config/callbacks.ts";
export { alignmentEvaluation } from "./evaluations/alignment/evaluation.ts";
export type { AlignmentOptions } from "./evaluations/alignment/options.ts";
export { PeriodicLeakageCallback, type PeriodicLeakageOptions } from "./config/callbacks.ts";
export { leakageEvaluation } from "./evaluations/leakage/evaluation.ts";
export type { LeakageOptions } from "./evaluations/leakage/evaluation.ts";
export { leakageQuestions } from "./evaluations/leakage/questions.ts";
export { PeriodicMarginCallback, type PeriodicMarginOptions } from "./config/callbacks.ts";
export { marginEvaluation } from "./evaluations/margin/evaluation.ts";
export type { MarginOptions } from "./evaluations/margin/evaluation.ts";
export { PeriodicKLCallback, type PeriodicKLOptions } from "./config/callbacks.ts";
export { klEvaluation } from "./evaluations/kl/evaluation.ts";
export type { KLOptions } from "./evaluations/kl/evaluation.ts";

export { judgeGrader, type JudgeGrader } from "./grading/judge/judge-grader.ts";
export type { JudgeOptions } from "./grading/judge/options.ts";
export { ruleGrader, type RuleGraderOptions } from "./grading/rule-grader.ts";
export { verifierGrader } from "./grading/verifier.ts";
export { permutationTest } from "./statistics/permutation.ts";

export type { PeriodicEvalBlock, PeriodicEvalConfig, PhaseEvalConfig } from "./config/config-schema.ts";
export type { CallbackBlockOptions } from "./config/callbacks.ts";
export type { ConfiguredJudge, OpenJudge } from "./config/from-block.ts";
export type { EvaluationMaker, EvaluationRegistry } from "./config/build-callbacks.ts";
export {
  buildPeriodicCallbacks,
  buildPeriodicEval,
  type BuildOptions,
  type PeriodicEval,
} from "./config/build-callbacks.ts";
export { periodicEvalConfig, type PeriodicEvalInput } from "./config/parse-config.ts";
