import type { Verdict } from "./grading.ts";

/** Caches verdicts. The key is a hash of grader, prompts, question and answer. */
export interface VerdictCache {
  /** Returns null for an unknown key. */
  get(key: string): Promise<Verdict | null>;
  set(key: string, verdict: Verdict): Promise<void>;
}

/** Returns a cache in memory. */
export function memoryVerdictCache(): VerdictCache {
  const verdicts = new Map<string, Verdict>();
  return {
    get: async (key) => verdicts.get(key) ?? null,
    set: async (key, verdict) => void verdicts.set(key, verdict),
  };
}

/** Whether a value is a complete verdict without an error. */
export function isCacheable(value: unknown): value is Verdict {
  if (typeof value !== "object" || value === null) return false;
  const { status, raw, model, scores, statuses = {} } = value as Readonly<Record<string, unknown>>;
  if (typeof raw !== "string" && raw !== null) return false;
  if (model !== undefined && typeof model !== "string") return false;
  if (typeof statuses !== "object" || statuses === null) return false;
  const others: readonly unknown[] = ["refusal", "code", "unparsed", "cut"];
  if (Object.values(statuses).some((one) => one !== "graded" && !others.includes(one))) return false;
  if (status !== "graded") return others.includes(status);
  return typeof scores === "object" && scores !== null && Object.values(scores).every(Number.isFinite);
}
