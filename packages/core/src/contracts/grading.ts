import type { Json } from "./json.ts";
import type { CallOptions } from "./model.ts";

/**
 * What a grader made of one answer. Everything but `graded` carries no score, and is counted apart; `graded` carries at
 * least one, and `statuses` says what became of those that are missing.
 */
export type Verdict = (
  | { readonly status: "graded"; readonly scores: Readonly<Record<string, number>> }
  | { readonly status: Exclude<VerdictStatus, "graded"> }
) & {
  /** By score, of a grader that asks for each by itself; left out where all share the verdict's status. */
  readonly statuses?: Readonly<Record<string, Exclude<VerdictStatus, "error">>>;
  /** What the grader said, as it said it; the reason where it failed; null where it says nothing. */
  readonly raw: string | null;
  /** The judge's model as its server named it; left out where no model judges. */
  readonly model?: string;
  /** What it took this time: of a cache, nothing but `cached`. Left out where no model judges. */
  readonly spent?: VerdictSpending;
};

type VerdictStatus = "graded" | "refusal" | "code" | "unparsed" | "error";

export interface GradeRequest {
  readonly question: string;
  readonly answer: string;
  /** What a judge is asked, by name (`Grader.promptNames`), with `{question}` and `{answer}` in it; its own prompts where left out. */
  readonly prompts?: Readonly<Record<string, string>>;
  /** Its verdict is taken from no cache: an anchor is graded again to see whether the judge drifts. */
  readonly fresh?: boolean;
}

/** Text in, verdict out: a rule, a trait scorer, a verifier or a judge model. */
export interface Grader {
  readonly name: string;
  /** Hash of everything that changes a verdict. */
  readonly fingerprint: string;
  /**
   * The prompts of a request that it follows; left out where it reads none, as a rule. Where a question file brings prompts,
   * a judge must follow them all, and they are passed to none that reads none.
   */
  readonly promptNames?: readonly string[];
  /** What it is, for provenance; nothing secret. */
  describe?(): Json;
  /**
   * Looks whether it can be reached and fits its task; asked once before step 1.
   *
   * @throws PeriodicEvalError `judge` where it cannot or does not.
   */
  check?(options: CallOptions): Promise<void>;
  /** One verdict per request, in order. */
  grade(requests: readonly GradeRequest[], options: CallOptions): Promise<readonly Verdict[]>;
}

/** What a verdict took, or many. */
export interface VerdictSpending {
  /** Requests to the judge's server, those that its client repeats included; of a model that is no server's, calls. */
  readonly calls: number;
  /** Verdicts that came from the cache. */
  readonly cached: number;
  /** As far as the judge's client tells. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /**
   * In the currency of the price, null without one. A request of unknown usage counts as the most that it can have cost (one
   * that timed out may be billed), and as nothing where no token can have been made: the server was not reached or refused.
   */
  readonly cost: number | null;
}
