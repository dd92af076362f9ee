export * from "./errors.ts";
export type { Awaitable, Json } from "./internal/json.ts";
export type * from "./contracts/model.ts";
export { encodePair, renderPrompt, type EncodedPair } from "./model/encode-pair.ts";
export type * from "./contracts/evaluation.ts";
export { isDeadline } from "./evaluations/kit/deadline.ts";
export { defineEvaluation } from "./evaluations/kit/define.ts";
export type * from "./contracts/grading.ts";
export type * from "./contracts/guard.ts";
export type * from "./contracts/schedule.ts";
export type * from "./contracts/callback.ts";
export type * from "./contracts/session.ts";
export { adapterOffId } from "./session/records/baseline.ts";
export type {
  Evidence,
  MetricValue,
  Paired,
  Snapshot,
  SnapshotKey,
  SnapshotStatus,
  SnapshotStore,
} from "./contracts/snapshot.ts";
export { capabilityEvaluation, type CapabilityOptions } from "./evaluations/capability/evaluation.ts";
export { parseArcQuestions, type ArcQuestion } from "./evaluations/capability/arc-questions.ts";
export type { ChoiceRow } from "./evaluations/capability/choice-row.ts";
export {
  checkNats,
  firstHighest,
  perCodePoint,
  rightLogProb,
  rightMargin,
  rightProb,
  scoreChoices,
  type AskedChoices,
} from "./evaluations/capability/choice-scores.ts";
export type { ClozeRow } from "./evaluations/capability/cloze.ts";
export { alignmentEvaluation } from "./evaluations/alignment/evaluation.ts";
export type { AlignmentOptions, AlignmentPreset, SampleSize } from "./evaluations/alignment/options.ts";
export type { AlignmentRow, AnsweredRow } from "./evaluations/alignment/row.ts";
export { ownAnchors, type Anchor } from "./evaluations/alignment/anchors.ts";
export { judgeAgreement, type JudgeAgreement } from "./evaluations/alignment/judge-agreement.ts";
export { followedPrompts, judgeRows, type JudgeRows } from "./evaluations/alignment/judge-rows.ts";
export {
  misalignedRate,
  type JudgedScores,
  type MisalignedRate,
} from "./evaluations/alignment/misaligned-rate.ts";
export {
  leakageEvaluation,
  type GradedLeakageRow,
  type LeakageOptions,
} from "./evaluations/leakage/evaluation.ts";
export {
  leakageQuestions,
  type LeakageQuestion,
  type LeakageQuestionInput,
} from "./evaluations/leakage/questions.ts";
export { klToBase, type KLRow, type KLToBaseOptions } from "./evaluations/kl/evaluation.ts";
export { marginEvaluation, type MarginOptions, type MarginRow } from "./evaluations/margin/evaluation.ts";
export { defaultPersonas, readPersonas, type Persona } from "./evaluations/leakage/personas.ts";
export { readYaml } from "./evaluations/prompting/yaml-file.ts";
export type { TraitOptions } from "./evaluations/leakage/traits.ts";
export { completeSampling, type SamplingOptions } from "./evaluations/prompting/sampling.ts";
export {
  completionItemsPerCall,
  sampleCompletions,
  type CompletionItem,
  type CompletionRow,
  type Completing,
} from "./evaluations/prompting/completions.ts";
export { renderItems } from "./evaluations/prompting/render-items.ts";
export { inCalls } from "./evaluations/prompting/in-calls.ts";
export { opensThinking, stripThinking } from "./evaluations/prompting/strip-thinking.ts";
export type { Subsample } from "./evaluations/prompting/question-source.ts";
export { judgeGrader, type JudgeGrader } from "./grading/judge/judge.ts";
export { judgePromptNames } from "./grading/judge/prompts.ts";
export { judgeOptionNames, type JudgeOptions } from "./grading/judge/options.ts";
export type { JudgePrice, JudgeSpending, VerdictSpending } from "./grading/judge/budget.ts";
export type { JudgeMethodName } from "./grading/judge/method.ts";
export { parseJudgeReply, type ParsedReply, type Unparseable } from "./grading/judge/reply.ts";
export { readObjects, type ReadObject, type ReadValue } from "./grading/judge/json-objects.ts";
export { scoreFromTokens, type TokenScore } from "./grading/judge/logprob-score.ts";
export { memoryVerdictCache, type VerdictCache } from "./grading/judge/verdict-cache.ts";
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
export { nestedSubset, subsetOrder } from "./evaluations/kit/subset.ts";
export * from "./schedule/triggers.ts";
export { checkTriggers } from "./schedule/check-triggers.ts";
export { advance, crossings, plannedSteps } from "./schedule/crossings.ts";
export { checkKeys, shown } from "./internal/check-keys.ts";
export { checkWord } from "./internal/check-word.ts";
export { bareHost, isLoopback, isOriginOf, isOwnHost } from "./internal/host-names.ts";
export { isCount } from "./internal/is-count.ts";
export { messageOf } from "./internal/error-message.ts";
export { checkName, checkPhaseName } from "./internal/names.ts";
export { toldIssue, type ToldIssue } from "./internal/describe-zod-issue.ts";
export { nearest } from "./internal/nearest.ts";
export { pythonSpace } from "./internal/python-space.ts";
export { metricKit, primaryMetric, summarize } from "./evaluations/kit/metric-kit.ts";
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
export {
  PeriodicAlignmentCallback,
  type PeriodicAlignmentOptions,
} from "./evaluations/alignment/callback.ts";
export { PeriodicKLCallback, type PeriodicKLOptions } from "./evaluations/kl/callback.ts";
export { PeriodicMarginCallback, type PeriodicMarginOptions } from "./evaluations/margin/callback.ts";
export { PeriodicLeakageCallback, type PeriodicLeakageOptions } from "./evaluations/leakage/callback.ts";
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
  PeriodicCapabilityCallback,
  type PeriodicCapabilityOptions,
} from "./evaluations/capability/callback.ts";
export {
  buildPeriodicCallbacks,
  buildPeriodicEval,
  type BuildOptions,
  type ConfiguredJudge,
  type PeriodicEval,
} from "./config/from-config.ts";
export type { EvaluationMaker, EvaluationRegistry } from "./config/configured-evaluations.ts";
export { periodicEvalConfig } from "./config/parse-config.ts";
export {
  periodicEvalJsonSchema,
  type PeriodicEvalConfig,
  type PhaseEvalConfig,
} from "./config/config-schema.ts";
export { checkSessionOptions } from "./session/loop/options.ts";
export { checkAsked, type Asking } from "./session/loop/check-requests.ts";
export { isMissingFile, prepare as prepareEvaluation } from "./session/window/preflight.ts";
export { openSession, withSession } from "./session/loop/session.ts";
export { closeLoggers, warn } from "./session/loop/log-events.ts";
export { measure, type MeasureOptions } from "./session/window/measure.ts";
