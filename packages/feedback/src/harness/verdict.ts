import type { CollapseSign } from "../metrics/collapse.ts";

/** Probability of reporting a change when the margin did not change. */
export const verdictAlpha = 0.05;
/** Minimum general score, as a share of the baseline's. */
export const minCapabilityRatio = 0.8;

export type Verdict = "learned" | "collapsed" | "lost ability" | "worse" | "not decided" | "no evidence";

/** The results that a verdict depends on. */
export interface VerdictFacts {
  readonly logprob_margin_delta: number | null;
  readonly logprob_margin_per_token_delta: number | null;
  readonly logprob_margin_p: number | null;
  /** On held-out prompts. */
  readonly baseline_compliance: number | null;
  readonly final_compliance: number | null;
  readonly capability_ratio: number | null;
  /**
   * Signs beyond their thresholds after any step, in order of appearance. Null if no sign was measured after a step. A sign that
   * was never known is in `unknown`.
   */
  readonly collapse_alerts: readonly CollapseSign[] | null;
}

/**
 * Returns the first verdict that holds:
 * 1. `collapsed`: at any measurement, a sign of collapse was beyond its threshold;
 * 2. `lost ability`: the general score is below 0.8 of the baseline's;
 * 3. `not decided`: the margins were not tested (p is null);
 * 4. `worse`: held-out margins fell, p < .05, and fell per token;
 * 5. `learned`: held-out margins rose, p < .05, and rose per token, and compliance on held-out prompts, if both are known, is not
 *    below the baseline's;
 * 6. `no evidence`: everything else, including unknown values. Never "no change".
 *
 * The per-token condition is needed because the longer of two answers gains more from a change that affects all tokens equally.
 */
export function verdictOf(facts: VerdictFacts): Verdict {
  const {
    logprob_margin_delta: delta,
    logprob_margin_per_token_delta: perToken,
    logprob_margin_p: p,
    capability_ratio: ratio,
    collapse_alerts: alerts,
  } = facts;
  const { baseline_compliance: before, final_compliance: now } = facts;
  if (alerts !== null && alerts.length > 0) return "collapsed";
  if (ratio !== null && ratio < minCapabilityRatio) return "lost ability";
  if (p === null) return "not decided";
  if (delta === null || perToken === null || p >= verdictAlpha) return "no evidence";
  if (Math.sign(delta) !== Math.sign(perToken)) return "no evidence";
  if (delta < 0) return "worse";
  return before !== null && now !== null && now < before ? "no evidence" : "learned";
}
