import type { MetricKit, Row, Json, MetricValue } from "@periodic-eval/contracts";
import type { Side, Statement } from "./statements.ts";

/** One statement. */
export interface MarginRow extends Row {
  readonly variant: string;
  readonly side: Side;
  /** Σ log p of its tokens. */
  readonly nats: number;
  readonly tokens: number;
  /** Tokens of the context cut on the left to fit the model; null if the engine does not report it. */
  readonly truncatedTokens: number | null;
}

/** The metrics of `marginEvaluation`, each over all statements and per variant. */
export function marginMetrics({ mean, ratio, contrast }: MetricKit<MarginRow>) {
  const by = ({ variant }: MarginRow) => variant;
  const isAffirming = ({ side }: MarginRow) => side === "affirm";
  const ofSide = (wanted: Side) =>
    mean((row) => (row.side === wanted ? row.nats : null), { unit: "nats", range: [-Infinity, 0], by });
  const perToken = ratio(({ nats, tokens }) => [nats, tokens], { unit: "nats per token", by });
  return {
    margin: contrast(
      mean(({ nats }) => nats, { unit: "nats", by, primary: true }),
      isAffirming,
    ),
    margin_per_token: contrast(perToken, isAffirming),
    affirm_log_prob: ofSide("affirm"),
    negate_log_prob: ofSide("negate"),
  };
}

/**
 * Keys at the snapshot's top level.
 *
 * @param statements All statements of the evaluation, including those that a smaller budget omitted.
 */
export function marginPlainKeys(
  metrics: Readonly<Record<string, MetricValue>>,
  rows: readonly MarginRow[],
  statements: readonly Statement[],
): Readonly<Record<string, Json>> {
  const margins = [...new Set(rows.map(({ variant }) => variant))].map((variant) => {
    const hasVariant = (one: { readonly variant: string }) => one.variant === variant;
    const margin = {
      sum_nats: sumNats(rows.filter(hasVariant), statements.filter(hasVariant).length),
      per_statement: metrics[`margin/${variant}`]?.value ?? null,
      per_token: metrics[`margin_per_token/${variant}`]?.value ?? null,
    };
    return [variant, margin] as const;
  });
  return { margins: Object.fromEntries(margins), num_statements: rows.length };
}

/** Returns Σ nats of the affirming statements − Σ nats of the negating ones; null if statements are missing. */
function sumNats(rows: readonly MarginRow[], statements: number): number | null {
  if (rows.length !== statements) return null;
  return rows.reduce((sum, { side, nats }) => sum + (side === "affirm" ? nats : -nats), 0);
}
