/** Printed for a value that is unknown. */
export const missingValueText = "–";

const minus = (text: string) => text.replace("-", "−");
/** Returns how a unit is written after a number: `%` for shares, an empty string for numbers without a unit. */
export const unitText = (unit: string): string =>
  unit === "share" ? "%" : unit === "probability" ? "" : unit;

const suffixOf = (unit: string): string => (unitText(unit) === "" ? "" : ` ${unitText(unit)}`);

/** Formats with the digits that distinguish two measurements: one decimal for percents, else three significant digits. */
function digits(value: number, unit: string): string {
  if (unit === "share") return minus((100 * value).toFixed(1));
  const size = Math.abs(value);
  return minus(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 || size === 0 ? 2 : 3));
}

/** Returns a metric's value with its unit; a share in percent. */
export function formatValue(value: number | null | undefined, unit: string): string {
  return value === null || value === undefined ? missingValueText : digits(value, unit) + suffixOf(unit);
}

/** Returns `[low, high]` without a unit. */
export function formatInterval(interval: readonly [number, number] | null | undefined, unit: string): string {
  return interval ? `[${digits(interval[0], unit)}, ${digits(interval[1], unit)}]` : missingValueText;
}

/** Returns a difference with its sign and unit; a difference of shares in percentage points. */
export function formatDelta(delta: number | null | undefined, unit: string): string {
  if (delta === null || delta === undefined) return missingValueText;
  return (delta > 0 ? "+" : "") + digits(delta, unit) + (unit === "share" ? " points" : suffixOf(unit));
}

/** Returns `p = 0.012`, or `p < 0.0001`. */
export function formatP(p: number | null): string {
  return p === null ? missingValueText : p < 0.0001 ? "p < 0.0001" : `p = ${p.toPrecision(2)}`;
}

/** Returns `right-answer log prob` for `gold_log_prob`. */
export const humanizeName = (name: string): string =>
  name.replace(/^gold_/, "right-answer ").replaceAll("_", " ");

/** Returns seconds with three significant digits: `0.123 s`. */
export const secondsText = (seconds: number): string => `${Number(seconds.toPrecision(3))} s`;

/** Returns `within the 60 s that the budget always allows`. */
export const withinGrace = (seconds: number): string =>
  `within the ${secondsText(seconds)} that the budget always allows`;
