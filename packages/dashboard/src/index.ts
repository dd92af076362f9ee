export { reasonsToLeaveOut, type RunOfMean } from "./overlay/summarize-overlay.ts";
export {
  describePaired,
  formatDelta,
  formatInterval,
  formatP,
  formatPercent,
  formatSeconds,
  formatValue,
  humanizeName,
  scaleOf,
} from "./html/format.ts";
export type { FeedbackSummary } from "./feedback/read-feedback.ts";
export type { FeedbackPreference, FeedbackRun } from "./feedback/read-feedback.ts";
export { writeFeedback, type WriteFeedbackOptions, type WrittenFeedback } from "./feedback/write-feedback.ts";
export { isAtEnd, formatMeasurement } from "./charts/metric-curves.ts";
export { edgeValues, formatCost } from "./run/phase-table.ts";
export type { PhaseChanges } from "./answers/read-answers.ts";
export { answerRows } from "./answers/answer-rows.ts";
export { rowsPlace } from "./answers/answered-measurements.ts";
export { isAnchor, type AnswerRow } from "./page-data/answers-data.ts";
export { readAnswers, type ReadAnswersOptions, type RunAnswers } from "./answers/read-answers.ts";
export { renderPage } from "./run/run-page.ts";
export { problemNames } from "./run/problems-section.ts";
export { notFinished, runState, type RunState } from "./run/run-state.ts";
export { phaseData } from "./run/phase-summary.ts";
export { phaseText } from "./charts/metric-curves.ts";
export { headline, secondJudgeText, stopText } from "./run/summary-sentence.ts";
export { judgementOf, partOfRange, type Judgement } from "./run/phase-summary.ts";
export {
  edgeHeadings,
  formatChange,
  summarizePhases,
  sortVoidFirst,
  type MetricSummary,
  type PhaseSummary,
} from "./run/phase-summary.ts";
export { methodsData, resultsData } from "./results/summarize-methods.ts";
export { renderResults } from "./results/results-page.ts";
export type { ResultsRun } from "./results/paired-change.ts";
export {
  hasMethods,
  summarizeMethods,
  type Method,
  type MethodChange,
  type MethodMetric,
  type MethodResult,
  type MethodsOptions,
  type MethodsSummary,
} from "./results/summarize-methods.ts";
export {
  changeGlyph,
  changeOver,
  formatScore,
  formatScoreChange,
  intervalNote,
  metricName,
} from "./results/result-tables.ts";
export { verdictKey } from "./html/verdict.ts";
export {
  summarizeResults,
  type ResultsMetric,
  type ResultsSummary,
  type ResultsTask,
} from "./results/summarize-results.ts";
export { isGroupMetric, type Measurement } from "./charts/metric-curves.ts";
export { overRuns } from "./overlay/summarize-overlay.ts";
export { writePage } from "./run/run-page.ts";
