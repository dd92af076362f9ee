import { checkKeys } from "../../internal/check-keys.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { isCount } from "../../internal/is-count.ts";
import type { Sampling } from "../../contracts/model.ts";

/** How completions are drawn; seeds are each firing's own. */
export type SamplingOptions = Omit<Sampling, "seed" | "topTokens">;

/**
 * Options over defaults.
 *
 * @throws PeriodicEvalError `config` at `where` for a wrong one.
 */
export function resolveSampling(
  where: string,
  options: Partial<SamplingOptions> = {},
  defaults: SamplingOptions,
): SamplingOptions {
  checkKeys(where, options, ["maxNewTokens", "temperature", "topP", "topK", "stop"]);
  const { maxNewTokens = 1, temperature = 0, topP = 1, topK = 1, stop = [] } = options;
  const checks: readonly (readonly [string, boolean, unknown, string])[] = [
    ["maxNewTokens", isCount(maxNewTokens, 1), maxNewTokens, "a whole number of 1 or more"],
    ["temperature", Number.isFinite(temperature) && temperature >= 0, temperature, "0 (greedy) or more"],
    ["topP", topP > 0 && topP <= 1, topP, "a share over 0 and up to 1"],
    ["topK", isCount(topK, 1), topK, "a whole number of 1 or more"],
    ["stop", isTexts(stop), stop, "a list of texts"],
  ];
  for (const [name, isRight, got, expected] of checks) {
    if (isRight) continue;
    throw new PeriodicEvalError({
      code: "config",
      where: `${where}.${name}`,
      got: quoteValue(got),
      expected,
      fix: "Correct it, or leave it out.",
    });
  }
  return { ...defaults, ...options };
}

const isTexts = (value: unknown) =>
  Array.isArray(value) && value.every((text) => typeof text === "string" && text !== "");
