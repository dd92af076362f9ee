import { formatMeasurement } from "../charts/measurement-text.ts";
import { formatValue } from "../html/format.ts";
import type { Measurement } from "../charts/metric-curves.ts";

/** Returns `0 of 40` for a share whose rows count fully, else `12.3 % of`. Names a status other than complete. */
function countText(measurement: Measurement, unit: string): string {
  const { value, n, status } = measurement;
  const hits = value === null || n === null ? NaN : value * n;
  if (unit !== "share" || Number.isNaN(hits)) return formatMeasurement(measurement, unit);
  const isWhole = Math.abs(hits - Math.round(hits)) < 1e-6 * Math.max(1, hits);
  const count = isWhole ? `${Math.round(hits)} of ${n}` : `${formatValue(value, unit)} of ${n}`;
  return status === "complete" ? count : `${count} (${status})`;
}

/** Returns `0 of 40 before, 24 of 40 after`, with words behind the first count. */
export function edgeCounts(
  { start, end }: { readonly start: Measurement; readonly end: Measurement },
  unit: string,
  words: string,
): string {
  const when = (at: Measurement) => (at.isAtStart ? "before" : at.isAtEnd ? "after" : `at step ${at.step}`);
  const [first, last] = [start, end].map((at) => countText(at, unit)) as [string, string];
  if (start.step === end.step) return `${last}${words} at step ${end.step}`;
  if (start.value === null) return `${last}${words} ${when(end)}`;
  if (end.value === null) return `${first}${words} ${when(start)}`;
  return first === last
    ? `${last}${words} ${when(start)} and ${when(end)}`
    : `${first}${words} ${when(start)}, ${last} ${when(end)}`;
}
