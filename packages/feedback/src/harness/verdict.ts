import type { CollapseSign } from "../metrics/collapse-summary.ts";

/** Chance of calling a margin risen, or fallen, that did not change. */
export const verdictAlpha = 0.05;
/** Share of the baseline's general ability that must be left. */
export const leastCapability = 0.8;

export type Verdict = "learned" | "collapsed" | "lost ability" | "worse" | "no evidence";

export interface VerdictFacts {
  readonly logprob_margin_delta: number | null;
  readonly logprob_margin_per_token_delta: number | null;
  readonly logprob_margin_p: number | null;
  readonly baseline_compliance: number | null;
  readonly final_compliance: number | null;
  readonly capability_ratio: number | null;
  readonly collapse_alerts: readonly CollapseSign[];
}

/**
 * The first of these that holds:
 * 1. `collapsed`: a sign of collapse was beyond its threshold at any look;
 * 2. `lost ability`: less than 0.8 of the baseline's general score is left;
 * 3. `worse`: held-out margins fell, p < .05, by token as well;
 * 4. `learned`: held-out margins rose, p < .05, by token as well, and compliance on held-out prompts, where both looks have
 *    it, is not below the baseline's;
 * 5. `no evidence`: everything else, what is unknown included. Never "no change".
 *
 * By token as well, since of two answers of unlike length the longer one gains more from what all tokens gain alike.
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
  if (alerts.length > 0) return "collapsed";
  if (ratio !== null && ratio < leastCapability) return "lost ability";
  if (delta === null || perToken === null || p === null || p >= verdictAlpha) return "no evidence";
  if (Math.sign(delta) !== Math.sign(perToken)) return "no evidence";
  if (delta < 0) return "worse";
  return before !== null && now !== null && now < before ? "no evidence" : "learned";
}
