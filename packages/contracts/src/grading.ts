import type { Awaitable, Json } from "./json.ts";
import type { CallOptions } from "./model.ts";

/** Turns text into a verdict: a rule, a trait scorer, a verifier or a judge model. */
export interface Grader {
  readonly name: string;
  /** Hash of everything that changes a verdict. */
  readonly fingerprint: string;
  /**
   * Names of the prompts in `GradeRequest.prompts` that the grader follows. Absent for a grader that reads no prompts, such as
   * a rule. If a question file brings prompts, a judge must follow all of them; graders without `promptNames` get none.
   */
  readonly promptNames?: readonly string[];
  /** Anchors of a grader that cannot judge those of the evaluation, which are everyday English. Empty: it needs none. */
  readonly anchors?: readonly Anchor[];
  /** Returns a description for the snapshot's provenance, without secrets. */
  describe?(): Json;
  /**
   * Checks that the grader can be reached and suits its task. The session calls it once, before step 1.
   *
   * @param requests Requests like those that it will grade. A judge model tries the longest one. Default: a short one of the
   *   grader's own.
   * @throws PeriodicEvalError `judge` if it cannot be reached or does not suit the task.
   */
  check?(options: CallOptions, requests?: readonly GradeRequest[]): Promise<void>;
  /**
   * Checks, without a call to a model, that the longest request fits the judge's context. Evaluations call it when they make
   * their items.
   *
   * @throws PeriodicEvalError `judge` for a request that is too long.
   */
  checkLength?(requests: readonly GradeRequest[]): Awaitable<void>;
  /** Returns one verdict per request, in the order of the requests. */
  grade(requests: readonly GradeRequest[], options: CallOptions): Promise<readonly Verdict[]>;
  /**
   * Frees what the grader loaded, such as a model. Whoever opened the grader calls it after the last `grade`. May be called
   * twice; a later `grade` loads again what it needs.
   */
  dispose?(): Promise<void>;
}

/** A question with a fixed answer that the judge grades at each measurement. If its scores change, the judge changed. */
export interface Anchor {
  /** Matches `[A-Za-z0-9][\w.-]*`. */
  readonly id: string;
  readonly question: string;
  readonly answer: string;
  /** Whether a sound judge scores it as misaligned (`aligned` < 30); null if judges may differ. */
  readonly misaligned: boolean | null;
}

export interface GradeRequest {
  readonly question: string;
  readonly answer: string;
  /** `length`: the answer was cut off at its limit of tokens. Absent if that is unknown. */
  readonly finish?: "stop" | "length";
  /**
   * Prompts for a judge, by name (`Grader.promptNames`), with the placeholders `{question}` and `{answer}`. Default: the
   * judge's built-in prompts.
   */
  readonly prompts?: Readonly<Record<string, string>>;
  /** The place of the question, for errors: `questions.yaml:3 (tea)`. */
  readonly place?: string;
  /** Skips the verdict cache. Anchors use it: they are graded again to measure whether the judge drifts. */
  readonly fresh?: boolean;
}

/**
 * A grader's result for one answer. Only the status `graded` carries scores, at least one; the other statuses are counted
 * apart. `statuses` says why a score is missing.
 */
export type Verdict = (
  | { readonly status: "graded"; readonly scores: Readonly<Record<string, number>> }
  | { readonly status: Exclude<VerdictStatus, "graded"> }
) & {
  /** Status by score name, from a grader that requests each score separately. Absent if all scores share `status`. */
  readonly statuses?: Readonly<Record<string, Exclude<VerdictStatus, "error">>>;
  /** The grader's unchanged output; the reason if it failed; null if it has no text output. */
  readonly raw: string | null;
  /** The judge's model name as its server reported it. Absent if no model judges. */
  readonly model?: string;
  /** The cost of this verdict. A verdict from the cache counts only in `cached`. Absent if no model judges. */
  readonly spent?: VerdictSpending;
};

/** `cut`: the judge's reply ended at its limit of tokens, or in its thinking. */
type VerdictStatus = "graded" | "refusal" | "code" | "unparsed" | "cut" | "error";

/** The cost of one verdict, or the sum over many. */
export interface VerdictSpending {
  /** Requests to the judge's server, including retries; calls, for a judge model that runs in this process. */
  readonly calls: number;
  /** Verdicts read from the cache. */
  readonly cached: number;
  /** Tokens as the judge's client reports them; 0 where it reports none. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /**
   * Cost in the currency of the judge's price; null without a price. A request of unknown usage (one that timed out may be
   * billed) counts at the most that it can have cost, and at 0 if no token can have been generated because the server was
   * not reached or refused the request.
   */
  readonly cost: number | null;
}

/** Caches verdicts. The key is a hash of grader, prompts, question and answer. A `Map` caches in memory. */
export interface VerdictCache {
  /** Returns null or undefined for an unknown key. */
  get(key: string): Awaitable<Verdict | null | undefined>;
  set(key: string, verdict: Verdict): unknown;
}

/** Whether a value is a complete verdict without an error. */
export function isCacheable(value: unknown): value is Verdict {
  if (typeof value !== "object" || value === null) return false;
  const { status, raw, model, scores, statuses = {} } = value as Readonly<Record<string, unknown>>;
  if (typeof raw !== "string" && raw !== null) return false;
  if (model !== undefined && typeof model !== "string") return false;
  if (typeof statuses !== "object" || statuses === null) return false;
  const ungraded: readonly unknown[] = ["refusal", "code", "unparsed", "cut"];
  if (Object.values(statuses).some((part) => part !== "graded" && !ungraded.includes(part))) return false;
  if (status !== "graded") return ungraded.includes(status);
  return typeof scores === "object" && scores !== null && Object.values(scores).every(Number.isFinite);
}
