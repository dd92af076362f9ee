/** The statistics of a snapshot: intervals, paired tests, planned comparisons and formatting. */
export { compareMeasurements, type ComparisonOptions, type EarlierMeasurement } from "./compare.ts";
export {
  formatDelta,
  formatInterval,
  formatValue,
  humanizeName,
  missingValueText,
  unitText,
} from "./format.ts";
export {
  clusteredShareEstimate,
  ratioEstimate,
  shareEstimate,
  wilson,
  z95,
  type Estimate,
  type Interval,
  type Unit,
} from "./intervals.ts";
export { alphaOfComparison, familyAlpha, type ComparisonPlan } from "./planned-comparisons.ts";
export { moverDifference, type Limits } from "./intervals.ts";
export { differenceOverRuns, meanOverRuns, type RunValues } from "./paired-tests.ts";
export { mcnemarExact, newcombePaired, type Cells, type Difference } from "./paired-tests.ts";
export { pairedT, type PairedT, type UnitPair } from "./paired-tests.ts";
export { passAtK, passHatK } from "./intervals.ts";
export { permutationTest, type QuestionPair } from "./permutation.ts";
export { rangeOfDifference, withinRange } from "./intervals.ts";
