import type { CallOptions } from "../model/types.ts";

/** What a grader made of one answer. Everything but `graded` carries no score, and is counted apart. */
export type Verdict =
  | {
      readonly status: "graded";
      readonly scores: Readonly<Record<string, number>>;
      readonly raw: string | null;
    }
  | { readonly status: "refusal" | "code" | "unparsed" | "error"; readonly raw: string | null };

export interface GradeRequest {
  readonly question: string;
  readonly answer: string;
}

/** Text in, verdict out: a rule, a trait scorer, a verifier or a judge model. */
export interface Grader {
  readonly name: string;
  /** Hash of everything that changes a verdict. */
  readonly fingerprint: string;
  /** One verdict per request, in order. */
  grade(requests: readonly GradeRequest[], options: CallOptions): Promise<readonly Verdict[]>;
}
