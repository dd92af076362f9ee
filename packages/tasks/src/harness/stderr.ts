import type { Metric, MetricValue, Row } from "@periodic-eval/core";

/** A standard error and the number of documents that it is of. */
export interface Spread {
  readonly stderr: number | null;
  readonly n: number;
}

/** Whether a metric is a mean over documents that are independent of each other. */
export const isOfDocuments = ({ kind, options, isFirst }: Metric<Row>): boolean =>
  kind !== "ratio" && options.cluster === undefined && isFirst === undefined;

/**
 * The standard error of a metric over the documents of one task as lm-evaluation-harness 0.4.13 has it: √(s²/n) with
 * s² = Σ(x − mean)²/(n − 1), null for fewer than 2. Snapshots have √(p(1 − p)/n) for a share, which is √((n − 1)/n) of it.
 * Deviation: of ratios (perplexities), and of rows that share clusters, it is the snapshot's, where the harness draws a
 * bootstrap.
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
 * That of a group weighted by size, from its tasks' (`pooled_sample_stderr` of lm-evaluation-harness 0.4.13):
 * s² = Σ (nᵢ − 1)·seᵢ²·nᵢ / (Σnᵢ − k), √(s² / Σnᵢ). Null where one of them is not known.
 */
export function pooledSpread(parts: readonly Spread[]): Spread {
  const n = parts.reduce((sum, part) => sum + part.n, 0);
  if (n <= parts.length || parts.some(({ stderr }) => stderr === null)) return { stderr: null, n };
  const squares = parts.reduce((sum, part) => sum + (part.n - 1) * part.stderr! ** 2 * part.n, 0);
  return { stderr: Math.sqrt(squares / (n - parts.length) / n), n };
}
