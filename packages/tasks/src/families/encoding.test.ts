import { measure } from "@periodic-eval/core";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
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
  it("is measured if the hooks are undefined", async () => {
    const { name, version } = evaluation();
    const hooks = { check: undefined, score: undefined };
    const text = (document: { readonly text: string }) => document.text;
    const { snapshot } = await measure(
      encodingEvaluation({ name, version, documents, text, ...hooks }),
      repeating(),
    );
    expect(snapshot.metrics["accuracy"]).toMatchObject({ value: 1 / 8 });
  });

  for (const check of evaluationConformance(() => ({ evaluation: evaluation(), model: fakeModel() })))
    it(check.name, check.run);

  it("is the number of correct tokens divided by the number of tokens after the first", async () => {
    // In aab, the a after a is correct and the b after a is not; in abababa, none of 6 is. That makes 1 of 8.
    const { snapshot, rows } = await measure(evaluation(), repeating());
    expect(snapshot.metrics["accuracy"]).toMatchObject({ value: 1 / 8, n: 2, unit: "share" });
    expect(rows.find(({ id }) => id === "a")).toMatchObject({ tokens: 2, correct: 1 });
    expect(snapshot).toMatchObject({ tokens: 8, too_short: 1 });
    expect(await evaluate(evaluation(), repeating(), { reduce: "none" })).toEqual([1 / 2, 0, null]);
    expect(await evaluate(evaluation(), repeating(), { reduce: "sum" })).toBe(1 / 2);
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

/** A fake model that predicts the letter after each letter: `b` after `a`. */
function counting(contextLength: number | null = null) {
  const model = fakeModel({ contextLength });
  const logLikelihoods: typeof model.logLikelihoods = async (requests, options) =>
    (await model.logLikelihoods(requests, options)).map((answer, at) => {
      const { context, continuation, greedyIds } = requests[at] as never as {
        readonly greedyIds?: boolean;
      } & Record<"context" | "continuation", { ids: number[] }>;
      const before = [...context.ids.slice(-1), ...continuation.ids.slice(0, -1)];
      return greedyIds === true ? { ...answer, tokenGreedyIds: before.map((id) => id + 1) } : answer;
    });
  return { ...model, logLikelihoods };
}

describe("hooks on the predicted text", () => {
  const words = [
    { id: "a", text: "abcd" },
    { id: "b", text: "abdz" },
    { id: "c", text: "z" },
  ];
  type Word = (typeof words)[number];
  const text = ({ text: own }: Word) => own;

  it("check(document, cleaned) is called with the cleaned prediction of each text", async () => {
    const seen: [id: string, cleaned: string][] = [];
    const family = encodingEvaluation({
      name: "next_letters",
      documents: words,
      text,
      clean: (predicted, { id }) => `${id}:${predicted}`,
      check: (document, cleaned) => {
        seen.push([document.id, cleaned]);
        return cleaned === `${document.id}:${document.text.slice(1)}`;
      },
    });
    const { snapshot, rows } = await measure(family, counting());
    // After a, b, c come b, c, d; after a, b, d come b, c, e. The text of one token has no prediction.
    expect(Object.fromEntries(seen)).toEqual({ a: "a:bcd", b: "b:bce" });
    expect(snapshot.metrics["accuracy"]).toMatchObject({
      value: 1 / 2,
      n: 2,
      unit: "share",
      higher_is_better: true,
    });
    expect(rows.find(({ id }) => id === "b")).toMatchObject({
      predicted: "bce",
      cleaned: "b:bce",
      score: false,
    });
    expect(rows.find(({ id }) => id === "c")).toMatchObject({ predicted: null, cleaned: null, score: null });
    expect(await family.evaluate(counting(), { reduce: "none" })).toEqual([1, 0, null]);
  });

  it("score(document, cleaned) returns a number, or a value that metrics turn into numbers", async () => {
    const letters = (document: Word, predicted: string) =>
      [...predicted].filter((letter, at) => letter === document.text[at + 1]).length;
    const family = encodingEvaluation({ name: "letters", documents: words, text, score: letters });
    expect(await family.evaluate(counting(), { reduce: "none" })).toEqual([3, 1, null]);
    expect(await family.evaluate(counting(), { reduce: "sum" })).toBe(4);
    const parts = encodingEvaluation({
      name: "parts",
      documents: words,
      text,
      score: (document: Word, predicted) => ({ hit: letters(document, predicted), all: predicted.length }),
      metrics: ({ ratio }) => ({ letters: ratio(({ score }) => score && [score.hit, score.all]) }),
    });
    expect(await parts.evaluate(counting())).toBe(4 / 6);
  });

  it("receive all predicted tokens of a text longer than the context", async () => {
    const family = encodingEvaluation({
      name: "long",
      documents: [{ id: "long", text: "abcdefghij" }],
      text: (one) => one.text,
      stride: 2,
      check: (one, predicted) => predicted === one.text.slice(1),
    });
    expect(await family.evaluate(counting(4))).toBe(1);
  });

  it("predict on the model's own most likely tokens, and pass the conformance suite", async () => {
    const model = fakeModel();
    const family = () =>
      encodingEvaluation({ name: "own", documents, text: (one) => one.text, score: (_, one) => one.length });
    for (const { run } of evaluationConformance(() => ({ evaluation: family(), model: fakeModel() })))
      await run();
    const { rows } = await measure(family(), model);
    const all = Array.from({ length: model.tokenizer.vocabSize }, (_, id) => id);
    const [first] = await model.nextToken([{ prompt: { text: "a" }, candidates: all }], {
      signal: new AbortController().signal,
    });
    const best = first!.nats.indexOf(Math.max(...first!.nats));
    const start = model.tokenizer.decode([best], { specialTokens: false });
    const { predicted } = rows.find(({ id }) => id === "a") as never as { readonly predicted: string };
    expect(predicted.startsWith(start)).toBe(true);
  });

  it("leave no trace in an evaluation without hooks", async () => {
    const asked: unknown[] = [];
    const inner = fakeModel();
    const logLikelihoods: typeof inner.logLikelihoods = (requests, options) => {
      asked.push(...requests);
      return inner.logLikelihoods(requests, options);
    };
    const { rows } = await measure(evaluation(), { ...inner, logLikelihoods });
    expect(asked.every((request) => !("greedyIds" in (request as object)))).toBe(true);
    expect(Object.keys(rows[0]!).sort()).toEqual(
      ["correct", "groups", "id", "item", "status", "tokens", "windows"].sort(),
    );
  });

  it.each<readonly [hooks: object, at: string, got: string]>([
    [{ check: () => true, score: () => 1 }, "check", "both check and score"],
    [{ clean: (one: string) => one }, "check", "neither check and score"],
    [{ check: "exact" }, "check", '"exact"'],
    [{ check: () => true, metrics: {} }, "metrics", "{}"],
    [{ chek: () => true }, "chek", 'the unknown option "chek"'],
  ])("are refused with their place: %j", (hooks, at, got) => {
    expect(() => encodingEvaluation({ name: "x", documents: words, text, ...hooks })).toThrow(
      expect.objectContaining({ code: "config", where: `encodingEvaluation options.${at}`, got }) as Error,
    );
  });

  it("are named with task and document if they throw", async () => {
    const cause = new Error("oops");
    const check = () => {
      throw cause;
    };
    const failing = encodingEvaluation({ name: "x", documents: words.slice(0, 1), text, check });
    const where = `task "x", document "${words[0]!.id}": check`;
    await expect(measure(failing, counting())).rejects.toMatchObject({ code: "config", where, cause });
  });

  it("require an answer of check, and an engine that reports the tokens", async () => {
    const family = (check: () => never) => encodingEvaluation({ name: "x", documents: words, text, check });
    await expect(
      measure(
        family(() => "yes" as never),
        counting(),
      ),
    ).rejects.toMatchObject({
      where: expect.stringContaining("encodingEvaluation options.check for row") as string,
      got: '"yes"',
    });
    const blind = fakeModel({ logLikelihood: () => -1 });
    await expect(
      measure(
        family(() => true as never),
        blind,
      ),
    ).rejects.toMatchObject({
      code: "model",
      got: "log-likelihoods without `tokenGreedyIds`",
    });
  });
});
