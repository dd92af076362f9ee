import * as z from "zod";
import { errorMessage, parseOptions, functionSchema } from "@periodic-eval/contracts/options";
import type { Anchor, Grader, Verdict } from "@periodic-eval/contracts";

export interface RuleGraderOptions {
  readonly name: string;
  /** Change it when the rule gives other scores to the same answer. Default `1`. */
  readonly version?: string;
  /** Anchors that the rule can judge. Default: none, since a rule gives the same verdict every time. */
  readonly anchors?: readonly Anchor[];
  /** Returns the scores of one answer; null if it cannot decide (recorded as `unparsed`, never as a score of 0). */
  readonly rule: (question: string, answer: string) => Readonly<Record<string, number>> | null;
}

const optionsSchema = z.strictObject({
  name: z.string(),
  version: z.string().optional(),
  anchors: z.array(z.custom<Anchor>()).optional(),
  rule: functionSchema("a function of a question and an answer"),
} satisfies Record<keyof RuleGraderOptions, z.ZodType>);

/**
 * Returns a grader that is a function: no model, no waiting, the same verdict every time. If the rule throws or returns a score
 * that is not finite, the verdict of that answer is `error` with the reason in `raw`; the other answers are graded.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function ruleGrader(options: RuleGraderOptions): Grader {
  parseOptions("ruleGrader options", optionsSchema, options);
  const { name, version = "1", anchors = [], rule } = options;
  return {
    name,
    // A function cannot be hashed by content, so its author sets the version.
    fingerprint: `rule:${name}@${version}`,
    anchors,
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
