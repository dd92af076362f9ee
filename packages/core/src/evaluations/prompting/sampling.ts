import { z } from "zod";
import type { Sampling } from "../../contracts/model.ts";
import { parseOptions } from "../../internal/parse-options.ts";

/** How completions are sampled. The session names the seed of each measurement. */
export type SamplingOptions = Omit<Sampling, "seed" | "topTokens">;

const positiveInteger = z.int("a positive integer").positive("a positive integer").optional();

/** Every field of `SamplingOptions`, each optional. */
export const samplingSchema = z.strictObject({
  maxNewTokens: positiveInteger,
  temperature: z.number("0 (greedy) or more").nonnegative("0 (greedy) or more").optional(),
  topP: z
    .number("a number above 0 and at most 1")
    .gt(0, "a number above 0 and at most 1")
    .max(1, "a number above 0 and at most 1")
    .optional(),
  topK: positiveInteger,
  stop: z
    .array(z.string("a non-empty string").min(1, "a non-empty string"), "an array of non-empty strings")
    .optional(),
} satisfies Record<keyof SamplingOptions, z.ZodType>);

/**
 * Returns the defaults, overridden by the options that are set.
 *
 * @throws PeriodicEvalError `config` for a wrong option; `where` names the options in the error.
 */
export function resolveSampling(
  where: string,
  options: Partial<SamplingOptions> = {},
  defaults: SamplingOptions,
): SamplingOptions {
  parseOptions(where, samplingSchema, options);
  return { ...defaults, ...options };
}
