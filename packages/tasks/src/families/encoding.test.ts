import { measure } from "@periodic-eval/core";
import { evaluationConformance, fakeModel } from "@periodic-eval/core/testing";
import { describe, expect, it } from "vitest";
import { encodingEvaluation } from "./encoding.ts";
import { evaluate } from "./evaluate.ts";

const documents = [
  { id: "a", text: "aab" },
  { id: "b", text: "abababa" },
  { id: "c", text: "z" },
];
const evaluation = () =>
  encodingEvaluation({ name: "next_token", documents, text: ({ text }: { readonly text: string }) => text });

/** A fake model that predicts that each letter repeats. */
function repeating() {
  const model = fakeModel();
  const logLikelihoods: typeof model.logLikelihoods = async (requests, options) =>
    (await model.logLikelihoods(requests, options)).map((answer, at) => {
      const { context, continuation } = requests[at] as never as Record<
        "context" | "continuation",
        { ids: number[] }
      >;
      const ids = [...context.ids, ...continuation.ids];
      const tokenIsGreedy = continuation.ids.map((id, i) => id === ids[context.ids.length + i - 1]);
      return { ...answer, tokenIsGreedy };
    });
  return { ...model, logLikelihoods };
}

describe("next-token accuracy", () => {
  for (const check of evaluationConformance(() => ({ evaluation: evaluation(), model: fakeModel() })))
    it(check.name, check.run);

  it("is the number of correct tokens divided by the number of tokens after the first", async () => {
    // In aab, the a after a is correct and the b after a is not; in abababa, none of 6 is. That makes 1 of 8.
    const { snapshot, rows } = await measure(evaluation(), repeating());
    expect(snapshot.metrics["accuracy"]).toMatchObject({ value: 1 / 8, n: 2, unit: "share" });
    expect(rows.find(({ id }) => id === "a")).toMatchObject({ tokens: 2, correct: 1 });
    expect(snapshot).toMatchObject({ tokens: 8, too_short: 1 });
    expect(await evaluate(evaluation(), repeating(), { reduce: "none" })).toEqual([1 / 2, 0, null]);
    expect(await evaluate(evaluation(), repeating(), { reduce: "sum" })).toBe(1);
  });

  it("counts the tokens to which the next-token log-probabilities give the highest value", async () => {
    const model = fakeModel();
    const ids = [97];
    const candidates = Array.from({ length: 128 }, (_, id) => id);
    const signal = new AbortController().signal;
    // This appends the most likely ASCII byte, which is not always the most likely token.
    let expected = 0;
    const all = Array.from({ length: model.tokenizer.vocabSize }, (_, id) => id);
    for (let i = 0; i < 6; i++) {
      const [letters, every] = await model.nextToken(
        [
          { prompt: { ids }, candidates },
          { prompt: { ids }, candidates: all },
        ],
        { signal },
      );
      const best = letters!.nats.indexOf(Math.max(...letters!.nats));
      if (letters!.nats[best] === Math.max(...every!.nats)) expected += 1;
      ids.push(best);
    }
    expect([0, 6], "some of six, not all").not.toContain(expected);
    const text = String.fromCharCode(...ids);
    const written = encodingEvaluation({
      name: "own",
      documents: [{ id: "t", text }],
      text: (one) => one.text,
    });
    expect(await evaluate(written, model)).toBe(expected / 6);
  });

  it("requires an engine that reports the most likely tokens", async () => {
    const blind = fakeModel({ logLikelihood: () => -1 });
    await expect(measure(evaluation(), blind)).rejects.toThrow(
      'next_token document "a": got log-likelihoods without `tokenIsGreedy`',
    );
  });
});
