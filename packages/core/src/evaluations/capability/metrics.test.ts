import { describe, expect, it } from "vitest";
import { fakeModel } from "@periodic-eval/testing";
import {
  brierScore,
  chanceWarnings,
  type ChoiceRow,
  indexOfHighest,
  perCodePoint,
  goldLogProb,
  goldMargin,
  goldProb,
  reliabilityOf,
  scoreChoices,
} from "./metrics.ts";

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

describe("chanceWarnings", () => {
  const rowOf = (id: string, isRight: boolean, persona: string | null = null): ChoiceRow => {
    const answers = { gold: "A", predicted: isRight ? "A" : "B", correct: isRight, nats };
    const asked = { labels: ["A", "B", "C", "D"], truncatedTokens: 0, ...(persona !== null && { persona }) };
    return { id: persona === null ? id : `${persona}/${id}`, status: "scored", ...asked, ...answers };
  };
  const rowsOf = (right: number, total: number, personas: readonly (string | null)[] = [null]) =>
    personas.flatMap((persona) =>
      Array.from({ length: total }, (_, at) => rowOf(`${at}`, at < right, persona)),
    );

  it.each([
    // Binomial tails of four choices: P(≥ 32 of 100) = 0.069, P(≥ 33) = 0.045, P(2 of 2) = 0.0625, P(3 of 3) = 0.016.
    [32, 100, ["32 of 100 questions right (32.0 %) is no evidence of more than guessing (25.0 %)."]],
    [33, 100, []],
    [2, 2, []],
    [0, 2, []],
    [0, 3, ["0 of 3 questions right (0.0 %) is no evidence of more than guessing (25.0 %)."]],
    // P(≤ 12 of 100) = 0.00103, P(≤ 11) = 0.0004.
    [12, 100, ["12 of 100 questions right (12.0 %) is no evidence of more than guessing (25.0 %)."]],
    [11, 100, ["11 of 100 questions right is far fewer than guessing gives (25.0 %)."]],
  ])("says of %i of %i right answers %j", (right, total, expected) => {
    const messages = chanceWarnings(rowsOf(right, total)).map(({ message }) => message);
    expect(messages).toEqual(expected.map((words) => expect.stringContaining(words)));
  });

  it("counts the answers of several personas to a question once", () => {
    const personas = Array.from({ length: 9 }, (_, at) => `p${at}`);
    expect(chanceWarnings(rowsOf(28, 100, personas))).toMatchObject([{ count: 28, total: 100 }]);
    expect(chanceWarnings(rowsOf(33, 100, personas))).toEqual([]);
  });
});

describe("calibration", () => {
  /** 200 questions of four choices with made-up log-probabilities. */
  const rows = Array.from({ length: 200 }, (_, i) => {
    const nats = [0, 1, 2, 3].map((k) => -((i * 7 + k * 13 * (i + 1)) % 97) / 17);
    const labels = ["A", "B", "C", "D"];
    const gold = labels[(7 * i + Math.floor(i / 3)) % 4]!;
    const predicted = labels[indexOfHighest(nats)]!;
    const correct = predicted === gold;
    return {
      id: String(i),
      status: "scored" as const,
      labels,
      gold,
      predicted,
      correct,
      nats,
      truncatedTokens: 0,
    };
  });

  it("equals scikit-learn 1.9.1 and torchmetrics 1.9.0", () => {
    const scores = rows.map(({ nats, labels, gold }) => brierScore(nats, labels.indexOf(gold)));
    expect(scores.reduce((sum, one) => sum + one, 0) / rows.length).toBeCloseTo(1.0106147803553962, 12);
    expect(reliabilityOf(rows).ece).toBeCloseTo(0.388545572757721, 6);
  });

  it("puts a confidence on an edge into the bin below it, and ignores rows that were not scored", () => {
    const [first] = rows;
    const nats = [0.5, 0.25, 0.25].map(Math.log);
    const unscored = { ...first!, nats: null, correct: null };
    const even = { ...first!, labels: ["A", "B", "C"], nats, correct: true };
    expect(reliabilityOf([even, unscored])).toEqual({
      ece: 0.5,
      reliability: [{ from: 0.4, n: 1, confidence: 0.5, accuracy: 1 }],
    });
    expect(reliabilityOf([unscored])).toEqual({ ece: null, reliability: [] });
  });
});
