/** The statistics of a snapshot: intervals, paired tests, planned comparisons and formatting. */
export { compareMeasurements, type ComparisonOptions, type EarlierMeasurement } from "./compare.ts";
export {
  formatDelta,
  formatInterval,
  formatP,
  formatValue,
  humanizeName,
  missingValueText,
  unitText,
} from "./format.ts";
export { shareEstimate, wilson, z95, type Estimate, type Interval, type Unit } from "./intervals.ts";
export { moverDifference, type Limits } from "./intervals.ts";
export { differenceOverRuns, meanOverRuns, type RunValues } from "./paired-tests.ts";
export { newcombePaired, type Cells, type Difference } from "./paired-tests.ts";
export { passAtK, passHatK } from "./intervals.ts";
export { rangeOfDifference, withinRange } from "./intervals.ts";
