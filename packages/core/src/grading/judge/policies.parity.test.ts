import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { expectClose } from "../../../../testing/src/expect-close.test-data.ts";
import { misalignedRate, type JudgedScores } from "../../evaluations/alignment/misaligned-rate.ts";
import { data, findData, findFixtures, reportMissing } from "../../../../testing/src/fixtures.test-data.ts";
import { parseJudgeReply } from "./json-method.ts";
import { scoreFromTokens } from "./logprob-method.ts";

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

/** The files' own: float64 arithmetic on numbers up to 100. */
const tolerance = { absolute: 1e-9 };
const read = <T>(path: string): T => JSON.parse(readFileSync(path, "utf8")) as T;

/** Replies that the file refuses and that are read since: their meaning is sure. */
const readSince: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  "single-quotes": { aligned: 80, coherent: 90 },
  "raw-newline-in-string": { aligned: 68, coherent: 69 },
};

const replies = findFixtures(/^judge\/[^/]*replies[^/]*\.json$/);
if (replies.length === 0) reportMissing("judge/*replies*.json");
describe.each(replies)("replies of %s", (file) => {
  it.each(read<Replies>(file).cases)("$id", ({ id, reply, parse, reason }) => {
    const parsed = parseJudgeReply(reply, ["aligned", "coherent"]);
    const scores = readSince[id] ?? parse;
    expect(parsed).toEqual(scores === "unparseable" ? { unparseable: reason } : { scores });
  });
});

const scores = findFixtures(/^judge\/[^/]*scores[^/]*\.json$/);
if (scores.length === 0) reportMissing("judge/*scores*.json");
describe.each(scores)("log-prob scores of %s", (file) => {
  it.each(read<TokenScores>(file).cases)("$id", ({ top_logprobs, expected, numeric_mass }) => {
    const scored = scoreFromTokens(
      top_logprobs.map(({ token, logprob }) => ({ text: token, nats: logprob })),
    );
    expect(scored.status === "graded").toBe(expected !== null);
    if (scored.status === "graded") expectClose(scored.score, expected!, tolerance, "score");
    expectClose(scored.numericMass, numeric_mass, tolerance, "numeric mass");
  });
});

const distributions = findData(/^emergent_misalignment\/judge_distributions[^/]*\.jsonl$/);
if (distributions.length === 0) reportMissing("emergent_misalignment/judge_distributions*.jsonl", data);
describe.each(distributions)("a real judge's distributions (%s)", (file) => {
  it("reproduce the recorded grades", () => {
    const rows = readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Distributions);
    // judge_distributions_70.jsonl has 70 lines.
    const [, count] = /_(\d+)\.jsonl$/.exec(file) ?? [];
    if (count === undefined) expect(rows.length).toBeGreaterThan(0);
    else expect(rows).toHaveLength(Number(count));
    const recomputed: JudgedScores[] = [];
    for (const row of rows) {
      const scores = { aligned: -1, coherent: -1 };
      for (const dimension of ["aligned", "coherent"] as const) {
        const tokens = Object.entries(row[`${dimension}_token_probs`]).map(([text, p]) => ({
          text,
          nats: Math.log(p),
        }));
        const scored = scoreFromTokens(tokens);
        expect(scored.status).toBe("graded");
        if (scored.status !== "graded") continue;
        expectClose(scored.score, row[dimension], tolerance, dimension);
        scores[dimension] = scored.score;
      }
      recomputed.push({ questionId: row.question_id, ...scores });
    }
    const published = rows.map(({ question_id: questionId, ...row }) => ({ questionId, ...row }));
    const rate = misalignedRate(recomputed);
    expect(rate).toEqual(misalignedRate(published));
    // The 70 were selected: all are coherent and misaligned.
    if (count === "70") expect(rate).toMatchObject({ graded: 70, misaligned: 70, undecided: 0 });
  });
});
