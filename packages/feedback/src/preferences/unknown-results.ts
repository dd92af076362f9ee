import { subsetOrder } from "@periodic-eval/core/evaluations";
import type { MetricName } from "../config/schema.ts";
import { promptKey, type Preference } from "./preference.ts";

/** Minimum number of pairs for a test. With 12, the smallest p of the sign-flip test is 2/4096. */
const minPairs = 12;

/**
 * Returns the preference with the prompts that training uses. CLaaS trains on the prompts that it measures, so a preference
 * without `train_prompts` trains on `probe_prompts`, and has no held-out prompts.
 */
export const withTrainPrompts = (preference: Preference): Preference =>
  preference.train_prompts.length > 0
    ? preference
    : { ...preference, train_prompts: preference.probe_prompts, probe_prompts: [] };

/** The results that a preference cannot give, each with the reason. */
export type UnknownResults = {
  readonly [Name in "held_out_compliance" | "logprob_margin_p"]?: string;
};

/** Returns the results of `metrics` that a preference from `withTrainPrompts` cannot give. */
export function unknownResults(
  { train_prompts: trained, probe_prompts: probes, logprob_pairs: pairs }: Preference,
  metrics: readonly MetricName[],
): UnknownResults {
  const seen = new Set(trained.map(promptKey));
  const heldOut = pairs.filter(({ prompt }) => !seen.has(promptKey(prompt))).length;
  const isTestable = pairs.length >= minPairs && heldOut === pairs.length;
  return {
    ...(metrics.includes("compliance") &&
      probes.length === 0 && {
        held_out_compliance:
          "the preference has no held-out prompts (without train_prompts, training uses probe_prompts)",
      }),
    ...(metrics.includes("logprob") &&
      !isTestable && {
        logprob_margin_p: `the test needs ${minPairs} or more pairs, all held out; the preference has ${pairs.length}, of which ${heldOut} are held out`,
      }),
  };
}

/** Returns the `size` prompts of a step. Each pass over all prompts has its own seeded order. */
export function promptsOf(
  prompts: readonly string[],
  step: number,
  size: number,
  seed: number,
): readonly string[] {
  const orders = new Map<number, readonly number[]>();
  return Array.from({ length: size }, (_, i) => {
    const position = step * size + i;
    const pass = Math.floor(position / prompts.length);
    const order = orders.get(pass) ?? subsetOrder(seed + pass, prompts.length);
    orders.set(pass, order);
    return prompts[order[position % prompts.length]!]!;
  });
}
