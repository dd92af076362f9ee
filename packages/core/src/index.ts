export * from "./errors.ts";
export type { Awaitable, Json } from "./json.ts";
export type * from "./model/types.ts";
export type * from "./evaluation/types.ts";
export { isDeadline } from "./evaluation/deadline.ts";
export { defineEvaluation } from "./evaluation/define.ts";
export type * from "./grading/types.ts";
export type * from "./guard/types.ts";
export type * from "./schedule/types.ts";
export type * from "./callback/types.ts";
export type * from "./session/types.ts";
export type {
  Evidence,
  MetricValue,
  Paired,
  Snapshot,
  SnapshotKey,
  SnapshotStatus,
  SnapshotStore,
} from "./snapshots/schema.ts";
export { capabilityEvaluation, type CapabilityOptions } from "./evaluations/capability.ts";
export { parseArcQuestions, type ArcQuestion } from "./evaluations/arc-questions.ts";
export type { ChoiceRow } from "./evaluations/choice-row.ts";
export type { ClozeRow } from "./evaluations/cloze.ts";
export type { Subsample } from "./evaluations/question-source.ts";
export { ruleGrader, type RuleGraderOptions } from "./grading/rules.ts";
export { seedOf, namedStream, statefulStream, type StatefulStream } from "./random/streams.ts";
export { canonicalJson, createHasher, hashBytes, hashJson, hashText, type Hasher } from "./random/hash.ts";
export { nestedSubset, subsetOrder } from "./evaluation/subset.ts";
export * from "./schedule/triggers.ts";
export { checkTriggers } from "./schedule/check-triggers.ts";
export { advance, crossings, plannedSteps } from "./schedule/crossings.ts";
export { checkKeys, shown } from "./check-keys.ts";
export { checkWord } from "./check-word.ts";
export { isCount } from "./is-count.ts";
export { messageOf } from "./message-of.ts";
export { walkJson } from "./walk-json.ts";
export { checkName, checkPhaseName } from "./names.ts";
export { nearest } from "./nearest.ts";
export { metricKit, primaryMetric, summarize } from "./evaluation/metric-kit.ts";
export {
  clusteredShareEstimate,
  ratioEstimate,
  shareEstimate,
  wilson,
  type Estimate,
  type Interval,
  type Unit,
} from "./statistics/intervals.ts";
export { mcnemarExact, newcombePaired, type Cells, type Difference } from "./statistics/paired.ts";
export { pairedT, type PairedT, type UnitPair } from "./statistics/paired-t.ts";
export { permutationTest, type QuestionPair } from "./statistics/permutation.ts";
export { compareLooks, type ComparisonOptions, type EarlierLook } from "./statistics/compare.ts";
export { alphaOfLook, familyAlpha, type LookPlan } from "./statistics/looks.ts";
export { passAtK, passHatK } from "./statistics/pass-k.ts";
export { mathRandomGuard, streamGuard } from "./guard/randomness.ts";
export { PeriodicCallback, type PeriodicOptions } from "./callback/periodic.ts";
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
export { PeriodicCapabilityCallback, type PeriodicCapabilityOptions } from "./callback/presets.ts";
export { checkSessionOptions } from "./session/options.ts";
export { openSession, withSession } from "./session/session.ts";
export { warn } from "./session/tell-loggers.ts";
export { measure, type MeasureOptions } from "./session/measure.ts";
