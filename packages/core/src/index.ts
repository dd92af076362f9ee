export * from "./errors.ts";
export type { Awaitable, Json } from "./json.ts";
export type * from "./model/types.ts";
export { encodePair, renderPrompt, type EncodedPair } from "./model/encode-pair.ts";
export type * from "./evaluation/types.ts";
export { isDeadline } from "./evaluation/deadline.ts";
export { defineEvaluation } from "./evaluation/define.ts";
export type * from "./grading/types.ts";
export type * from "./guard/types.ts";
export type * from "./schedule/types.ts";
export type * from "./callback/types.ts";
export type * from "./session/types.ts";
export { adapterOffId } from "./session/baseline.ts";
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
export {
  checkNats,
  firstHighest,
  perCodePoint,
  rightLogProb,
  rightMargin,
  rightProb,
  scoreChoices,
  type AskedChoices,
} from "./evaluations/choice-scores.ts";
export type { ClozeRow } from "./evaluations/cloze.ts";
export { alignmentEvaluation } from "./evaluations/alignment.ts";
export type { AlignmentOptions, AlignmentPreset, SampleSize } from "./evaluations/alignment-options.ts";
export type { AlignmentRow, AnsweredRow } from "./evaluations/alignment-row.ts";
export { ownAnchors, type Anchor } from "./evaluations/anchors.ts";
export { judgeAgreement, type JudgeAgreement } from "./evaluations/judge-agreement.ts";
export { followedPrompts, judgeRows, type JudgeRows } from "./evaluations/judge-rows.ts";
export { misalignedRate, type JudgedScores, type MisalignedRate } from "./evaluations/misaligned.ts";
export { leakageEvaluation, type GradedLeakageRow, type LeakageOptions } from "./evaluations/leakage.ts";
export {
  leakageQuestions,
  type LeakageQuestion,
  type LeakageQuestionInput,
} from "./evaluations/leakage-questions.ts";
export { klToBase, type KLRow, type KLToBaseOptions } from "./evaluations/kl-to-base.ts";
export { marginEvaluation, type MarginOptions, type MarginRow } from "./evaluations/margin.ts";
export { defaultPersonas, readPersonas, type Persona } from "./evaluations/personas.ts";
export { readYaml } from "./evaluations/yaml-file.ts";
export type { TraitOptions } from "./evaluations/traits.ts";
export { completeSampling, type SamplingOptions } from "./evaluations/sampling.ts";
export {
  completionItemsPerCall,
  sampleCompletions,
  type CompletionItem,
  type CompletionRow,
  type Completing,
} from "./evaluations/completions.ts";
export { renderItems } from "./evaluations/render-items.ts";
export { inCalls } from "./evaluations/in-calls.ts";
export { opensThinking, stripThinking } from "./evaluations/strip-thinking.ts";
export type { Subsample } from "./evaluations/question-source.ts";
export { judgeGrader, type JudgeGrader } from "./grading/judge.ts";
export { judgePromptNames } from "./grading/judge-prompts.ts";
export { judgeOptionNames, type JudgeOptions } from "./grading/judge-options.ts";
export type { JudgePrice, JudgeSpending, VerdictSpending } from "./grading/judge-budget.ts";
export type { JudgeMethodName } from "./grading/judge-method.ts";
export { parseJudgeReply, type ParsedReply, type Unparseable } from "./grading/judge-reply.ts";
export { readObjects, type ReadObject, type ReadValue } from "./grading/json-objects.ts";
export { scoreFromTokens, type TokenScore } from "./grading/logprob-score.ts";
export { memoryVerdictCache, type VerdictCache } from "./grading/verdict-cache.ts";
export {
  exportedVerifier,
  verdictOfVerified,
  verifierGrader,
  withinVerifierTime,
  type Verified,
  type Verifier,
  type VerifierArgs,
  type VerifierModule,
  type VerifierTask,
} from "./grading/verifiers.ts";
export { ruleGrader, type RuleGraderOptions } from "./grading/rules.ts";
export { seedOf, namedStream, statefulStream, type StatefulStream } from "./random/streams.ts";
export { pythonRandom, type PythonRandom } from "./random/python.ts";
export { canonicalJson, createHasher, hashBytes, hashJson, hashText, type Hasher } from "./random/hash.ts";
export { nestedSubset, subsetOrder } from "./evaluation/subset.ts";
export * from "./schedule/triggers.ts";
export { checkTriggers } from "./schedule/check-triggers.ts";
export { advance, crossings, plannedSteps } from "./schedule/crossings.ts";
export { checkKeys, shown } from "./check-keys.ts";
export { checkWord } from "./check-word.ts";
export { bareHost, isLoopback, isOriginOf, isOwnHost } from "./host-names.ts";
export { isCount } from "./is-count.ts";
export { messageOf } from "./message-of.ts";
export { checkName, checkPhaseName } from "./names.ts";
export { toldIssue, type ToldIssue } from "./issue-words.ts";
export { nearest } from "./nearest.ts";
export { pythonSpace } from "./python-space.ts";
export { metricKit, primaryMetric, summarize } from "./evaluation/metric-kit.ts";
export {
  clusteredShareEstimate,
  ratioEstimate,
  shareEstimate,
  wilson,
  z95,
  type Estimate,
  type Interval,
  type Unit,
} from "./statistics/intervals.ts";
export { moverDifference, type Limits } from "./statistics/mover.ts";
export { rangeOfDifference, withinRange, type Range } from "./statistics/range.ts";
export { formatDelta, formatInterval, formatValue, unknown, words } from "./statistics/format.ts";
export { mcnemarExact, newcombePaired, type Cells, type Difference } from "./statistics/paired.ts";
export { pairedT, type PairedT, type UnitPair } from "./statistics/paired-t.ts";
export { differenceOverRuns, meanOverRuns, type RunValues } from "./statistics/over-runs.ts";
export { permutationTest, type QuestionPair } from "./statistics/permutation.ts";
export { compareLooks, type ComparisonOptions, type EarlierLook } from "./statistics/compare.ts";
export { alphaOfLook, familyAlpha, type LookPlan } from "./statistics/looks.ts";
export { passAtK, passHatK } from "./statistics/pass-k.ts";
export { divertMathRandom, mathRandomGuard, streamGuard } from "./guard/randomness.ts";
export { PeriodicCallback, type PeriodicOptions } from "./callback/periodic.ts";
export { PeriodicAlignmentCallback, type PeriodicAlignmentOptions } from "./callback/alignment-callback.ts";
export { PeriodicKLCallback, type PeriodicKLOptions } from "./callback/kl-callback.ts";
export { PeriodicMarginCallback, type PeriodicMarginOptions } from "./callback/margin-callback.ts";
export { PeriodicLeakageCallback, type PeriodicLeakageOptions } from "./callback/leakage-callback.ts";
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
export {
  buildPeriodicCallbacks,
  buildPeriodicEval,
  type BuildOptions,
  type ConfiguredJudge,
  type PeriodicEval,
} from "./callback/from-config.ts";
export type { EvaluationMaker, EvaluationRegistry } from "./callback/configured-evaluations.ts";
export { periodicEvalConfig } from "./callback/parse-config.ts";
export {
  periodicEvalJsonSchema,
  type PeriodicEvalConfig,
  type PhaseEvalConfig,
} from "./callback/config-schema.ts";
export { checkSessionOptions } from "./session/options.ts";
export { checkAsked, type Asking } from "./session/check-asked.ts";
export { isMissingFile, prepare as prepareEvaluation } from "./session/preflight.ts";
export { openSession, withSession } from "./session/session.ts";
export { closeLoggers, warn } from "./session/tell-loggers.ts";
export { measure, type MeasureOptions } from "./session/measure.ts";
