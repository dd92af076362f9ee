import { checkKeys } from "../internal/check-keys.ts";
import { errorMessage } from "../internal/error-message.ts";
import type { Grader, Verdict } from "../contracts/grading.ts";

export interface RuleGraderOptions {
  readonly name: string;
  /** Changes when the rule gives other scores to the same answer; default `1`. */
  readonly version?: string;
  /** Scores of one answer; null where the rule cannot say (recorded as `unparsed`, never as a score of 0). */
  readonly rule: (question: string, answer: string) => Readonly<Record<string, number>> | null;
}

/**
 * A grader that is a function: no model, no waiting, the same verdict every time. A rule that throws or gives a score
 * that is no finite number makes that answer's verdict `error`, with the reason in `raw`; the others are graded.
 *
 * @throws PeriodicEvalError `config` for an unknown option.
 */
export function ruleGrader(options: RuleGraderOptions): Grader {
  checkKeys("ruleGrader", options, ["name", "version", "rule"]);
  const { name, version = "1", rule } = options;
  return {
    name,
    // A function has no content that could be hashed: its author says when it changed.
    fingerprint: `rule:${name}@${version}`,
    async grade(requests, { signal }) {
      signal.throwIfAborted();
      return requests.map(({ question, answer }) => verdictOf(() => rule(question, answer)));
    },
  };
}

function verdictOf(rule: () => Readonly<Record<string, number>> | null): Verdict {
  try {
    const scores = rule();
    if (scores === null) return { status: "unparsed", raw: null };
    const bad = Object.entries(scores).find(([, score]) => !Number.isFinite(score));
    if (bad !== undefined) return { status: "error", raw: `${bad[0]} is ${bad[1]}` };
    return { status: "graded", scores, raw: null };
  } catch (error) {
    return { status: "error", raw: errorMessage(error) };
  }
}
