import type { Verdict } from "../../contracts/grading.ts";

/** Keeps verdicts by their content: the key is a hash of grader, prompts, question and answer. */
export interface VerdictCache {
  /** Null where there is none. */
  get(key: string): Promise<Verdict | null>;
  set(key: string, verdict: Verdict): Promise<void>;
}

/** A cache that ends with the process. */
export function memoryVerdictCache(): VerdictCache {
  const verdicts = new Map<string, Verdict>();
  return {
    get: async (key) => verdicts.get(key) ?? null,
    set: async (key, verdict) => void verdicts.set(key, verdict),
  };
}

/** Whether a value is a verdict that a cache may hold: whole, and no error. */
export function isCacheable(value: unknown): value is Verdict {
  if (typeof value !== "object" || value === null) return false;
  const { status, raw, model, scores, statuses = {} } = value as Readonly<Record<string, unknown>>;
  if (typeof raw !== "string" && raw !== null) return false;
  if (model !== undefined && typeof model !== "string") return false;
  if (typeof statuses !== "object" || statuses === null) return false;
  const others: readonly unknown[] = ["refusal", "code", "unparsed"];
  if (Object.values(statuses).some((one) => one !== "graded" && !others.includes(one))) return false;
  if (status !== "graded") return others.includes(status);
  return typeof scores === "object" && scores !== null && Object.values(scores).every(Number.isFinite);
}
