import type { TrainerCallback, BudgetLimit } from "@periodic-eval/contracts";

/**
 * Returns which options allow more measuring, as code and YAML spell them:
 * `raise budget.graceSeconds (60 s); in YAML budget.grace_seconds`.
 *
 * @param limits Options and their values. An empty value is left out.
 */
export function remedyFor(verb: string, limits: readonly (readonly [BudgetLimit, value: string])[]): string {
  const inCode = limits.map(([limit, value]) => `budget.${camelCase(limit)}${value && ` (${value})`}`);
  const inYaml = limits.map(([limit]) => `budget.${limit}`);
  return `${verb} ${inCode.join(" or ")}; in YAML ${inYaml.join(" or ")}`;
}

const camelCase = (limit: BudgetLimit): string =>
  limit.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Names the option for fewer questions, after a space, if a callback has one; else empty. */
export const fewerQuestions = (callbacks: readonly TrainerCallback[]): string =>
  callbacks.some(({ asks = [] }) => asks.some(({ name }) => name === "capability"))
    ? " Or ask fewer questions: subsample of the callback; in YAML subsample_n."
    : "";
