import { describe, expect, it } from "vitest";
import { fakeModel } from "@periodic-eval/testing";
import { indexOfHighest, perCodePoint, goldLogProb, goldMargin, goldProb, scoreChoices } from "./metrics.ts";

const nats = [0.1, 0.2, 0.3].map(Math.log);

describe("goldLogProb, goldProb and goldMargin", () => {
  it("score one correct choice", () => {
    // 0.2 of 0.6; the best wrong one has 0.3.
    expect(goldLogProb(nats, [1])).toBe(Math.log(0.2));
    expect(goldProb(nats, [1])).toBeCloseTo(1 / 3, 12);
    expect(goldMargin(nats, [1])).toBeCloseTo(Math.log(2 / 3), 12);
  });

  it("score several correct choices together", () => {
    // 0.1 + 0.2 of 0.6; the better of the two has 0.2.
    expect(goldLogProb(nats, [0, 1])).toBeCloseTo(Math.log(0.3), 12);
    expect(goldProb(nats, [0, 1])).toBeCloseTo(1 / 2, 12);
    expect(goldMargin(nats, [0, 1])).toBeCloseTo(Math.log(2 / 3), 12);
  });

  it("handle questions without a wrong choice, and probabilities that underflow", () => {
    expect(goldMargin(nats, [0, 1, 2])).toBeNull();
    expect(goldProb(nats, [0, 1, 2])).toBe(1);
    // exp(−2000) is 0 in float64; two equal log-probabilities have half each.
    expect(goldProb([-2000, -2000], [0])).toBe(0.5);
  });
});

it("counts an emoji of two UTF-16 units as one code point", () => {
  expect(perCodePoint([-4, -4], ["ab", "😀"])).toEqual([-2, -4]);
});

it("returns the first of equal values", () => {
  expect(indexOfHighest([-2, -1, -1])).toBe(1);
});

it("gives each question the scores of its own choices", async () => {
  const model = fakeModel({ logLikelihood: (context, choice) => -(context.length * 10 + choice.length) });
  const requests = [
    { id: "one", context: { text: "a" }, continuations: ["b", "bb"] },
    { id: "two", context: { text: "aa" }, continuations: ["bbb"] },
  ];
  const scores = await scoreChoices(model, requests, { signal: new AbortController().signal });
  expect(scores.map(({ nats }) => nats)).toEqual([[-11, -12], [-23]]);
  expect(model.calls.logLikelihoods).toBe(1);
});
