import type { Metric, MetricValue, Row } from "@periodic-eval/core";

/** A standard error and its number of documents. */
export interface Spread {
  readonly stderr: number | null;
  readonly n: number;
}

/** Whether a metric is a mean over independent documents. */
export const isOfDocuments = ({ kind, options, isFirst }: Metric<Row>): boolean =>
  kind !== "ratio" && options.cluster === undefined && isFirst === undefined;

/**
 * Computes the standard error of a metric over the documents of one task, as lm-evaluation-harness 0.4.13 does: √(s²/n) with
 * s² = Σ(x − mean)²/(n − 1), null for fewer than 2 documents. Snapshots have √(p(1 − p)/n) for a share, which is √((n − 1)/n) of
 * that. Deviation: for ratios (perplexities) and clustered rows it returns the snapshot's value; the harness bootstraps.
 */
export function taskSpread(metric: Metric<Row>, rows: readonly Row[], value: MetricValue): Spread {
  if (!isOfDocuments(metric)) return { stderr: value.stderr, n: value.n };
  const values = rows.flatMap((row) => metric.observe(row)?.value ?? []);
  const n = values.length;
  if (n < 2) return { stderr: null, n };
  const mean = values.reduce((sum, one) => sum + one, 0) / n;
  const squares = values.reduce((sum, one) => sum + (one - mean) ** 2, 0);
  return { stderr: Math.sqrt(squares / (n - 1) / n), n };
}

/**
 * Computes the standard error of a group weighted by size, from k tasks (`pooled_sample_stderr` of lm-evaluation-harness 0.4.13):
 * s² = Σ (nᵢ − 1)·seᵢ²·nᵢ / (Σnᵢ − k), √(s² / Σnᵢ). Null if one of them is unknown.
 */
export function pooledSpread(parts: readonly Spread[]): Spread {
  const n = parts.reduce((sum, part) => sum + part.n, 0);
  if (n <= parts.length || parts.some(({ stderr }) => stderr === null)) return { stderr: null, n };
  const squares = parts.reduce((sum, part) => sum + (part.n - 1) * part.stderr! ** 2 * part.n, 0);
  return { stderr: Math.sqrt(squares / (n - parts.length) / n), n };
}
