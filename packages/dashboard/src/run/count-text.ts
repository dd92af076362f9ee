import { formatMeasurement } from "../charts/measurement-text.ts";
import { formatValue } from "../html/format.ts";
import type { Measurement } from "../charts/metric-curves.ts";

/** Returns `0 of 40` for a share whose rows count fully, else `12.3 % of`. Names a status other than complete. */
export function countText(measurement: Measurement, unit: string): string {
  const { value, n, status } = measurement;
  const hits = value === null || n === null ? NaN : value * n;
  if (unit !== "share" || Number.isNaN(hits)) return formatMeasurement(measurement, unit);
  const isWhole = Math.abs(hits - Math.round(hits)) < 1e-6 * Math.max(1, hits);
  const count = isWhole ? `${Math.round(hits)} of ${n}` : `${formatValue(value, unit)} of ${n}`;
  return status === "complete" ? count : `${count} (${status})`;
}
