export {
  describePaired,
  formatDelta,
  formatInterval,
  formatP,
  formatPercent,
  formatSeconds,
  formatValue,
  words,
} from "./format.ts";
export { formatChange, formatLook } from "./look-text.ts";
export { formatOverhead } from "./overhead.ts";
export { renderPage } from "./page.ts";
export { summarizePhases, type MetricSummary, type PhaseSummary } from "./phase-summary.ts";
export { isOfGroup, type Look } from "./tracks.ts";
export { writePage } from "./write-page.ts";
