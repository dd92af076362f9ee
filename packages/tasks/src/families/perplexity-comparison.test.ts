import { measure } from "@periodic-eval/core";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { perplexityComparisonEvaluation, type PerplexityComparisonOptions } from "./perplexity-comparison.ts";

interface Ending {
  readonly id: string;
  readonly start: string;
  readonly endings: readonly string[];
}

const documents: readonly Ending[] = [
  { id: "a", start: "It rained, so", endings: [" he", " he took it"] },
  { id: "b", start: "It snowed, so", endings: [" we", " we slid on"] },
];
const options: PerplexityComparisonOptions<Ending> = {
  name: "endings",
  documents,
  prompt: ({ start }) => start,
  choices: ({ endings }) => endings,
  gold: () => 1,
};
/** A fake byte-level model: short endings cost 2 nats per token, long ones 1, and " we slid on" another 30. */
const model = () =>
  fakeModel({
    logLikelihood: (_, ending) => (ending.length === 3 ? -6 : ending === " we slid on" ? -41 : -11),
  });

describe("perplexity of continuations", () => {
  for (const check of evaluationConformance(() => ({
    evaluation: perplexityComparisonEvaluation(options),
    model: fakeModel(),
  })))
    it(check.name, check.run);

  it("is compared per token, or as a sum", async () => {
    // Per token, −6/3 and −11/11 favour the long ending, −6/3 and −41/11 the short one: 1 of 2 is correct.
    const byMean = await measure(perplexityComparisonEvaluation(options), model());
    expect(byMean.snapshot.metrics["accuracy"]).toMatchObject({ value: 0.5, n: 2 });
    expect(byMean.rows.find(({ id }) => id === "a")).toMatchObject({ tokens: [3, 11], predicted: 1 });
    // The sum favours the short endings, which are both wrong.
    const bySum = await measure(perplexityComparisonEvaluation({ ...options, compare: "sum" }), model());
    expect(bySum.snapshot.metrics["accuracy"]).toMatchObject({ value: 0 });
  });

  it("divides the sum by all tokens of a choice", async () => {
    // −4/2 against −9/4 favours the short choice. Divided by one token less, −4/1 against −9/3, the long choice would win.
    const evaluation = perplexityComparisonEvaluation({
      ...options,
      documents: [{ id: "x", start: "so", endings: ["ab", "abcd"] }],
    });
    const scored = fakeModel({ logLikelihood: (_, ending) => (ending === "ab" ? -4 : -9) });
    const { rows } = await measure(evaluation, scored);
    expect(rows[0]).toMatchObject({ tokens: [2, 4], nats: [-4, -9], predicted: 0 });
  });

  it("counts the first token of each continuation", async () => {
    // The endings differ only in their first token, so a score that skips it could not separate them.
    const first = perplexityComparisonEvaluation({
      ...options,
      documents: [{ id: "x", start: "so", endings: ["A…", "B…"] }],
      compare: "sum",
    });
    const plain = fakeModel();
    const { rows } = await measure(first, plain);
    const ids = [...plain.tokenizer.encode("so")];
    const signal = new AbortController().signal;
    const [next] = await plain.nextToken([{ prompt: { ids }, candidates: [65, 66] }], { signal });
    const own = await plain.logLikelihoods(
      [65, 66].map((id) => ({ context: { ids: [...ids, id] }, continuation: "…" })),
      { signal },
    );
    const { nats } = rows[0] as unknown as { readonly nats: readonly number[] };
    for (const at of [0, 1]) expect(nats[at]).toBeCloseTo(next!.nats[at]! + own[at]!.sumNats, 10);
  });
});

it("rejects an unknown value of `compare`", () => {
  expect(() => perplexityComparisonEvaluation({ ...options, compare: "max" as never })).toThrow(
    'perplexityComparisonEvaluation options.compare: got "max"',
  );
});
