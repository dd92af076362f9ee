import { measure } from "@periodic-eval/core";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { marginDelta, preferenceMarginEvaluation, type PreferenceMarginRow } from "./preference-margin.ts";

const preference = {
  name: "polite",
  logprob_pairs: [
    { prompt: "a?", chosen: "yes please", rejected: "no" },
    { prompt: "b?", chosen: "thanks", rejected: "ok" },
  ],
};
// Σ log p in nats. The fake tokenizer's tokens are bytes: 10, 2, 6, 2.
const nats: Readonly<Record<string, number>> = { "yes please": -5, no: -4, thanks: -3, ok: -8 };
const scripted = fakeModel({ logLikelihood: (_, continuation) => nats[continuation] ?? null });
const rows = (margins: readonly number[]): readonly PreferenceMarginRow[] =>
  margins.map((margin, at) => ({
    id: `${at}`,
    chosenNats: margin,
    chosenTokens: 2,
    rejectedNats: 0,
    rejectedTokens: 1,
    truncatedTokens: 0,
  }));

describe("preferenceMarginEvaluation", () => {
  for (const check of evaluationConformance(() => ({
    evaluation: preferenceMarginEvaluation({ preference }),
    model: fakeModel(),
  })))
    it(check.name, check.run);

  it("returns the mean difference of log p, in total and per token", async () => {
    const { snapshot } = await measure(preferenceMarginEvaluation({ preference }), scripted);
    // (−5 + 4, −3 + 8) / 2; (−0.5 + 2, −0.5 + 4) / 2.
    expect(snapshot.metrics["logprob_margin"]).toMatchObject({ value: 2, n: 2 });
    expect(snapshot.metrics["logprob_margin_per_token"]!.value).toBeCloseTo(2.5, 12);
  });

  it("scores answers after a user turn", async () => {
    const contexts = new Set<string>();
    const model = fakeModel({ logLikelihood: (context) => (contexts.add(context), null) });
    await measure(preferenceMarginEvaluation({ preference }), model);
    expect([...contexts]).toContain("<|user|>a?<|end|><|assistant|>");
  });
});

describe("marginDelta", () => {
  it("compares pairs by id, with a sign-flip test", () => {
    const baseline = rows(Array.from({ length: 12 }, () => 0));
    // All twelve rise: two of 2^12 sign assignments are as extreme.
    const risen = marginDelta(rows(Array.from({ length: 12 }, (_, at) => at + 1)), baseline);
    expect(risen).toMatchObject({ delta: 6.5, deltaPerToken: 3.25, n: 12 });
    expect(risen.p).toBeCloseTo(2 / 4096, 12);
    // Two margins rise and two fall, all by the same amount.
    expect(marginDelta(rows([1, -1, 1, -1]), rows([0, 0, 0, 0]))).toMatchObject({ delta: 0, p: 1 });
  });

  it("returns null without a common pair", () => {
    expect(marginDelta(rows([1]), [])).toEqual({ delta: null, deltaPerToken: null, n: 0, p: null });
  });
});
