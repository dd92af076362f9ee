import type * as z from "zod";

/** Metrics whose values are shares, in the words of lm-evaluation-harness and of the tasks here. */
const shares =
  /^(acc|acc_.+|.+_acc|accuracy|exact_match|mc[12]|pass@\d+|pass_rate|win_rate|\w+_level_\w+_acc)$/;
/** Metrics that cannot be negative. */
const amounts = /^(.*perplexity|bits_per_byte)$/;

/** Adds an issue for each number of a run outside its metric's range. */
export function checkValues(
  { metrics }: { readonly metrics: Readonly<Record<string, number | null>> },
  context: z.RefinementCtx,
): void {
  for (const [key, value] of Object.entries(metrics)) {
    const [least, most] = rangeOf(key);
    if (value === null || (value >= least && value <= most)) continue;
    const message = most === 1 ? "a share from 0 to 1" : "a number of 0 or more";
    context.addIssue({ code: "custom", path: ["metrics", key], message });
  }
}

/** Returns the range of a key's metric: `task/metric,filter`. */
function rangeOf(key: string): readonly [number, number] {
  // The filter's name may contain a comma.
  const [, metric = ""] = /^[^/]+\/([^,]+),/.exec(key) ?? [];
  if (shares.test(metric)) return [0, 1];
  return amounts.test(metric) ? [0, Infinity] : [-Infinity, Infinity];
}
