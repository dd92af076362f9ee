import { describe, expect, it } from "vitest";
import { fakeModel } from "../../testing/fake-model.ts";
import {
  indexOfHighest,
  perCodePoint,
  goldLogProb,
  goldMargin,
  goldProb,
  scoreChoices,
} from "./choice-scores.ts";

const nats = [0.1, 0.2, 0.3].map(Math.log);

describe("what log-probabilities say of the right choices", () => {
  it("of one", () => {
    // 0.2 of 0.6; the best wrong one has 0.3.
    expect(goldLogProb(nats, [1])).toBe(Math.log(0.2));
    expect(goldProb(nats, [1])).toBeCloseTo(1 / 3, 12);
    expect(goldMargin(nats, [1])).toBeCloseTo(Math.log(2 / 3), 12);
  });

  it("of several together", () => {
    // 0.1 + 0.2 of 0.6; the better of the two has 0.2.
    expect(goldLogProb(nats, [0, 1])).toBeCloseTo(Math.log(0.3), 12);
    expect(goldProb(nats, [0, 1])).toBeCloseTo(1 / 2, 12);
    expect(goldMargin(nats, [0, 1])).toBeCloseTo(Math.log(2 / 3), 12);
  });

  it("where all are right, and where their probabilities underflow", () => {
    expect(goldMargin(nats, [0, 1, 2])).toBeNull();
    expect(goldProb(nats, [0, 1, 2])).toBe(1);
    // exp(−2000) is 0 in float64; of −2000 and −2000 each has half.
    expect(goldProb([-2000, -2000], [0])).toBe(0.5);
  });
});

it("counts an emoji of two UTF-16 units as one code point", () => {
  expect(perCodePoint([-4, -4], ["ab", "😀"])).toEqual([-2, -4]);
});

it("takes the first of equals", () => {
  expect(indexOfHighest([-2, -1, -1])).toBe(1);
});

it("gives each question the scores of its own choices", async () => {
  const model = fakeModel({ logLikelihood: (context, choice) => -(context.length * 10 + choice.length) });
  const asked = [
    { context: { text: "a" }, continuations: ["b", "bb"] },
    { context: { text: "aa" }, continuations: ["bbb"] },
  ];
  const scores = await scoreChoices(model, asked, { signal: new AbortController().signal });
  expect(scores.map((own) => own.map(({ sumNats }) => sumNats))).toEqual([[-11, -12], [-23]]);
  expect(model.calls.logLikelihoods).toBe(1);
});
