import type * as z from "zod";

/** The numbers of a run in `metrics.json`, by `task/metric,filter`. */
interface RunNumbers {
  readonly metrics: Readonly<Record<string, number | null>>;
  readonly stderr: Readonly<Record<string, number | null>>;
  readonly ci95: Readonly<Record<string, readonly [number, number] | null>>;
}

/** Metrics whose values are shares, in the words of lm-evaluation-harness and of the tasks here. */
const shares =
  /^(acc|acc_.+|.+_acc|accuracy|exact_match|mc[12]|pass@\d+|pass_rate|win_rate|\w+_level_\w+_acc)$/;
/** Metrics that cannot be negative. */
const amounts = /^(.*perplexity|bits_per_byte)$/;

/** Adds an issue for each number of a run that cannot be true: outside its metric's range or its own interval. */
export function checkValues({ metrics, stderr, ci95 }: RunNumbers, context: z.RefinementCtx): void {
  const refuse = (path: readonly (string | number)[], message: string) =>
    context.addIssue({ code: "custom", path: [...path], message });
  for (const [key, value] of Object.entries(metrics)) {
    if (value === null) continue;
    const [least, most] = rangeOf(key);
    if (value < least || value > most)
      refuse(["metrics", key], most === 1 ? "a share from 0 to 1" : "a number of 0 or more");
    const interval = ci95[key] ?? null;
    if (interval !== null && !isWithin(value, interval))
      refuse(["metrics", key], `a value in its interval, ${interval[0]} to ${interval[1]}`);
  }
  for (const [key, value] of Object.entries(stderr))
    if (value !== null && value < 0) refuse(["stderr", key], "a number of 0 or more");
  for (const [key, interval] of Object.entries(ci95))
    if (interval !== null && interval[0] > interval[1]) refuse(["ci95", key], "ascending bounds");
}

/** Returns the range of a key's metric: `task/metric,filter`. */
function rangeOf(key: string): readonly [number, number] {
  // The filter's name may contain a comma.
  const [, metric = ""] = /^[^/]+\/([^,]+),/.exec(key) ?? [];
  if (shares.test(metric)) return [0, 1];
  return amounts.test(metric) ? [0, Infinity] : [-Infinity, Infinity];
}

/** Other programs round the value and its bounds. */
function isWithin(value: number, [low, high]: readonly [number, number]): boolean {
  const rounding = 1e-3 * Math.abs(high - low) + 1e-9;
  return value >= low - rounding && value <= high + rounding;
}
