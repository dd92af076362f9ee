import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scoreFromTokens } from "./logprob-score.ts";

const score = (probabilities: Readonly<Record<string, number>>) =>
  scoreFromTokens(Object.entries(probabilities).map(([text, p]) => ({ text, nats: Math.log(p) })));

describe("scoreFromTokens", () => {
  it("returns refusal or code when prefixes of those words outweigh the numbers", () => {
    // .2 + .1 on beginnings of REFUSAL, .25 on numbers is a score, .24 is none
    expect(score({ R: 0.2, " REF": 0.1, "50": 0.24 }).status).toBe("refusal");
    expect(score({ R: 0.2, " REF": 0.1, "50": 0.25 })).toMatchObject({ status: "graded", score: 50 });
    expect(score({ CO: 0.3, "CODE\n": 0.1, R: 0.35 }).status).toBe("code");
    expect(score({ R: 0.24, "50": 0.24 }).status).toBe("unparsed");
    expect(score({ Refuse: 0.5, refusal: 0.4, "": 0.1 }).status).toBe("unparsed");
  });

  it("stays within 0–100 for any tokens, and ignores log-probabilities that are not finite", () => {
    const token = fc.record({
      text: fc.oneof(fc.integer({ min: -5, max: 120 }).map(String), fc.string()),
      nats: fc.oneof(fc.double({ max: 0, noNaN: false }), fc.constant(Number.NaN)),
    });
    fc.assert(
      fc.property(fc.array(token, { maxLength: 20 }), (tokens) => {
        const scored = scoreFromTokens(tokens);
        if (scored.status === "graded") expect(scored.score >= 0 && scored.score <= 100).toBe(true);
        expect(scored.numericMass).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
