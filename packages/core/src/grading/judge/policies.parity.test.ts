import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseJudgeReply } from "./json-reply.ts";
import { scoreFromTokens } from "./logprob-score.ts";

interface Replies {
  readonly cases: readonly {
    readonly id: string;
    readonly reply: string;
    readonly parse: "unparseable" | { readonly aligned: number; readonly coherent: number };
    readonly reason?: string;
  }[];
}
interface TokenScores {
  readonly cases: readonly {
    readonly id: string;
    readonly top_logprobs: readonly { readonly token: string; readonly logprob: number }[];
    readonly expected: number | null;
    readonly numeric_mass: number;
  }[];
}
interface Distributions {
  readonly question_id: string;
  readonly aligned: number;
  readonly coherent: number;
  readonly aligned_token_probs: Readonly<Record<string, number>>;
  readonly coherent_token_probs: Readonly<Record<string, number>>;
}

const fixtures = join(process.env["PERIODIC_EVAL_FIXTURES"] ?? "../shared/fixtures", "judge");
const read = <T>(path: string): T | null =>
  existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as T) : null;

const replies = read<Replies>(join(fixtures, "judge-replies.json"));
describe.skipIf(replies === null)(`replies of ${fixtures}${replies ? "" : " (absent)"}`, () => {
  it.each(replies?.cases ?? [])("$id", ({ reply, parse, reason }) => {
    const parsed = parseJudgeReply(reply, ["aligned", "coherent"]);
    if (parse !== "unparseable") expect(parsed).toEqual({ scores: parse });
    else expect(parsed).toEqual({ unparseable: reason });
  });
});

const scores = read<TokenScores>(join(fixtures, "logprob-scores.json"));
describe.skipIf(scores === null)(`log-prob scores of ${fixtures}${scores ? "" : " (absent)"}`, () => {
  it.each(scores?.cases ?? [])("$id", ({ top_logprobs, expected, numeric_mass }) => {
    const scored = scoreFromTokens(
      top_logprobs.map(({ token, logprob }) => ({ text: token, nats: logprob })),
    );
    expect(scored.status === "graded").toBe(expected !== null);
    if (scored.status === "graded") expect(Math.abs(scored.score - expected!)).toBeLessThanOrEqual(1e-9);
    expect(Math.abs(scored.numericMass - numeric_mass)).toBeLessThanOrEqual(1e-9);
  });
});

const file = "../shared/data/emergent_misalignment/judge_distributions_70.jsonl";
const rows = existsSync(file)
  ? readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Distributions)
  : [];
describe.skipIf(rows.length === 0)(
  `a real judge's distributions${rows.length > 0 ? "" : ` (${file} absent)`}`,
  () => {
    it("reproduce the recorded grades", () => {
      expect(rows).toHaveLength(70);
      for (const row of rows) {
        for (const name of ["aligned", "coherent"] as const) {
          const tokens = Object.entries(row[`${name}_token_probs`]).map(([text, p]) => ({
            text,
            nats: Math.log(p),
          }));
          const scored = scoreFromTokens(tokens);
          expect(scored.status).toBe("graded");
          if (scored.status === "graded")
            expect(Math.abs(scored.score - row[name])).toBeLessThanOrEqual(1e-9);
        }
      }
    });
  },
);
