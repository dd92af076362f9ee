export {
  describePaired,
  formatDelta,
  formatInterval,
  formatP,
  formatPercent,
  formatSeconds,
  formatValue,
  humanizeName,
} from "./format.ts";
export type { FeedbackSummary } from "./feedback/feedback-files.ts";
export type { FeedbackPreference, FeedbackRun } from "./feedback/read-feedback.ts";
export { writeFeedback, type WriteFeedbackOptions, type WrittenFeedback } from "./feedback/write-feedback.ts";
export { formatChange, formatLook } from "./look-text.ts";
export { formatOverhead } from "./overhead.ts";
export { renderPage } from "./page.ts";
export { phaseData } from "./phase-data.ts";
export { summarizePhases, type MetricSummary, type PhaseSummary } from "./phase-summary.ts";
export { resultsData } from "./results/results-data.ts";
export { renderResults } from "./results/results-page.ts";
export type { ResultsRun } from "./results/results-run.ts";
export { changeGlyph, formatScore, formatScoreChange } from "./results/score-text.ts";
export {
  summarizeResults,
  type ResultsMetric,
  type ResultsSummary,
  type ResultsTask,
} from "./results/summarize-results.ts";
export { metricName } from "./results/task-section.ts";
export { isOfGroup, type Look } from "./tracks.ts";
export { writePage } from "./write-page.ts";
