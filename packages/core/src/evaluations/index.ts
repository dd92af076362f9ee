/** The parts of evaluations: prompts, completions, subsets, multiple-choice scores, and metrics over rows. */
export { defaultAnchors } from "./alignment/anchors.ts";
export { checkJudgeFor, judgeRows, type JudgeRows } from "./alignment/judge-rows.ts";
export { storedAlignmentEvaluation } from "./alignment/stored-evaluation.ts";
export { storedRefusalEvaluation } from "./refusal/evaluation.ts";
export { hasJudgeErrors } from "../grading/open-rows.ts";
export { storedJudge, type StoredJudge } from "../grading/grader-schema.ts";
export {
  isCoherent,
  isMisaligned,
  misalignedRate,
  type JudgedScores,
  type MisalignedRate,
} from "./alignment/misaligned-rate.ts";
export { judgeAgreement, type JudgeAgreement } from "./alignment/judge-agreement.ts";
export type { AlignmentPreset, SampleSize } from "./alignment/options.ts";
export { isBare, type AlignmentRow, type AnsweredRow } from "./alignment/metrics.ts";
export {
  checkLogProbs,
  goldProb,
  indexOfHighest,
  predictChoice,
  scoreChoices,
  truncatedRows,
  type ChoiceRequest,
  type ChoiceScores,
  type PredictedChoice,
} from "./capability/metrics.ts";
export type { ClozeRow } from "./capability/cloze.ts";
export { goldMetrics, type GoldScores } from "./capability/metrics.ts";
export { defaultQuestions, type Subsample } from "./capability/question-file.ts";
export type { ChoiceRow } from "./capability/metrics.ts";
export { isDeadline, measureInBatches } from "./kit/measure-in-batches.ts";
export { metricKit, primaryMetric, summarize } from "./kit/metric-kit.ts";
export { nestedSubset, subsetOrder } from "./kit/subset.ts";
export type { ForgettingRow } from "./forgetting/evaluation.ts";
export type { MemorizationRow } from "./memorization/evaluation.ts";
export type { TraitsRow } from "./traits/evaluation.ts";
export type { DirectionRow } from "./traits/directions.ts";
export type { RefusalRow } from "./refusal/evaluation.ts";
export type { SycophancyRow } from "./sycophancy/evaluation.ts";
export type { KLRow } from "./kl/evaluation.ts";
export type { GradedLeakageRow } from "./leakage/metrics.ts";
export { leakageQuestions, type LeakageQuestion, type LeakageQuestionInput } from "./leakage/questions.ts";
export type { TraitOptions } from "./leakage/traits.ts";
export type { MarginRow } from "./margin/evaluation.ts";
export {
  completionItemsPerBatch,
  promptTexts,
  requestsFor,
  sampleCompletions,
  type CompletionItem,
  type CompletionOptions,
  type CompletionRow,
} from "./prompting/completions.ts";
export { defaultPersonas, readPersonas, type Persona } from "./prompting/personas.ts";
export { encodePairs, renderPrompts, type EncodedPair } from "../model/encode-pair.ts";
export { renderEach } from "../model/bulk-tokenizer.ts";
export { completionFields, renderItems, truncatedFlag } from "./prompting/completions.ts";
export { resolveSampling, type SamplingOptions } from "./prompting/prompt-options.ts";
export { opensThinking, stripThinking } from "../model/thinking.ts";
export { requireMetrics } from "./kit/define.ts";
export { samplingSchema } from "./prompting/prompt-options.ts";
