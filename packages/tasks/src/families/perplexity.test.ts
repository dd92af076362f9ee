import { measure } from "@periodic-eval/core";
import { evaluationConformance, fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { evaluate } from "./evaluate.ts";
import { perplexityEvaluation } from "./perplexity.ts";

const texts = (...all: readonly string[]) => all.map((text, at) => ({ id: `t${at}`, text }));
const of = (documents: readonly { readonly id: string; readonly text: string }[]) =>
  perplexityEvaluation({ name: "prose", documents, text: ({ text }) => text });

/** A fake model in which a token is a byte, with a cost in nats by the first letter of the text. */
const costing = (nats: Readonly<Record<string, number>>, beginOfText = false) =>
  fakeModel({
    tokenizer: fakeTokenizer({ beginOfText }),
    logLikelihood: (context, continuation) =>
      -nats[(beginOfText ? continuation : context)[0]!]! * continuation.length,
  });

describe("perplexity of texts", () => {
  for (const check of evaluationConformance(() => ({
    evaluation: of(texts("It rained.", "It snowed again, all day.", "x", "So we stayed in.")),
    model: fakeModel({ contextLength: 9 }),
  })))
    it(check.name, check.run);

  it("is exp(nats / tokens) over all texts, and skips the first token of each text without a begin-of-text", async () => {
    // With nine tokens of ln 2 and two of ln 8, the perplexity is exp((9 ln 2 + 2 · 3 ln 2) / 11) = 2^(15/11).
    const model = costing({ a: Math.log(2), b: Math.log(8) });
    const { snapshot, rows } = await measure(of(texts("a234567890", "b23")), model);
    expect(snapshot.metrics["perplexity"]!.value).toBeCloseTo(2 ** (15 / 11), 12);
    expect(snapshot.metrics["perplexity"]).toMatchObject({ n: 2, higher_is_better: false });
    expect(snapshot.metrics["nats_per_token"]!.value).toBeCloseTo((15 / 11) * Math.LN2, 12);
    // Eleven scored bytes have 15 bits.
    expect(snapshot.metrics["bits_per_byte"]!.value).toBeCloseTo(15 / 11, 12);
    expect(snapshot.metrics["byte_perplexity"]!.value).toBeCloseTo(2 ** (15 / 11), 12);
    // Each text has one word: 15 bits over two words.
    expect(snapshot.metrics["word_perplexity"]!.value).toBeCloseTo(2 ** 7.5, 9);
    expect(snapshot.primary_metric).toBe("perplexity");
    expect(rows.find(({ id }) => id === "t0")).toMatchObject({ tokens: 9, bytes: 9, words: 1, windows: 1 });
  });

  it("differs from the mean perplexity of the texts", async () => {
    const model = costing({ a: Math.log(2), b: Math.log(8) });
    const each = await evaluate(of(texts("a234567890", "b23")), model, { reduce: "none" });
    expect(each[0]).toBeCloseTo(2, 12);
    expect(each[1]).toBeCloseTo(8, 12);
    // The mean of the two is 5; the perplexity of the corpus is 2^(15/11) = 2.57.
    expect(await evaluate(of(texts("a234567890", "b23")), model)).toBeCloseTo(2 ** (15 / 11), 12);
    // The scores are the texts' perplexities, and their sum is 2 + 8.
    expect(await evaluate(of(texts("a234567890", "b23")), model, { reduce: "sum" })).toBeCloseTo(10, 12);
  });

  it("counts the first token after a begin-of-text", async () => {
    // Ten tokens of ln 2 and three of ln 8 have 19 bits over 13 tokens.
    const model = costing({ a: Math.log(2), b: Math.log(8) }, true);
    const { snapshot } = await measure(of(texts("a234567890", "b23")), model);
    expect(snapshot.metrics["perplexity"]!.value).toBeCloseTo(2 ** (19 / 13), 12);
    expect(snapshot.metrics["bits_per_byte"]!.value).toBeCloseTo(19 / 13, 12);
    expect(snapshot).toMatchObject({ texts: 2, tokens: 13, too_short: 0 });
  });

  it("counts the first token after a `prefixToken`", async () => {
    const model = fakeModel();
    const prefixed = perplexityEvaluation({
      name: "prose",
      documents: texts("ab"),
      text: ({ text }) => text,
      prefixToken: 257,
    });
    const [answer] = await model.logLikelihoods(
      [{ context: { ids: [257] }, continuation: { ids: [97, 98] } }],
      { signal: new AbortController().signal },
    );
    const { snapshot } = await measure(prefixed, model);
    expect(snapshot.metrics["perplexity"]!.value).toBeCloseTo(Math.exp(-answer!.sumNats / 2), 12);
  });

  it("leaves out texts without a token to score", async () => {
    const { snapshot, rows } = await measure(of(texts("", "a", "ab")), costing({ a: 1 }));
    expect(snapshot).toMatchObject({ texts: 1, too_short: 2, tokens: 1 });
    expect(rows.find(({ id }) => id === "t1")).toMatchObject({ status: "too_short", nats: null });
    expect(snapshot.metrics["perplexity"]).toMatchObject({ n: 1 });
  });

  it("counts words and bytes of the original text if it is given", async () => {
    const wiki = perplexityEvaluation({
      name: "wiki",
      documents: [{ id: "p", text: "abcd", page: " a b\u001cc é " }],
      text: ({ text }) => text,
      original: ({ page }) => page,
    });
    const { snapshot, rows } = await measure(wiki, costing({ a: 1 }));
    // re.split(r"\s+", " a b\x1cc é ") of Python: ["", "a", "b", "c", "é", ""]; é has two bytes.
    expect(rows[0]).toMatchObject({ words: 6, bytes: 10, nats: 3 });
    expect(snapshot.metrics["word_perplexity"]!.value).toBeCloseTo(Math.exp(3 / 6), 12);
  });

  it("counts all bytes of a character that begins in the unscored first token", async () => {
    // 😀 has four bytes, and the first token is one of them. It decodes to U+FFFD, a different character of three bytes.
    const { rows } = await measure(of(texts("😀")), fakeModel());
    expect(rows[0]).toMatchObject({ tokens: 3, bytes: 4 });
  });
});

describe("a text longer than the context", () => {
  const text = "abcdefghij";
  const long = (stride?: number) =>
    perplexityEvaluation({
      name: "long",
      documents: texts(text),
      text: (document) => document.text,
      ...(stride !== undefined && { stride }),
    });

  it.each([[undefined], [2]])("is scored in rolling windows with stride %s", async (stride) => {
    const model = fakeModel({ contextLength: 4 });
    const { rows } = await measure(long(stride), model);
    const ids = [...model.tokenizer.encode(text)];
    // The first window of 4 scores tokens 1–4 after token 0. Each later window scores `stride` tokens and starts 4 tokens before its last.
    const ends = stride === undefined ? [5, 9, 10] : [5, 7, 9, 10];
    let nats = 0;
    for (const [at, end] of ends.entries()) {
      for (let token = ends[at - 1] ?? 1; token < end; token++) {
        const context = ids.slice(Math.max(0, end - 5), token);
        const [next] = await model.nextToken([{ prompt: { ids: context }, candidates: [ids[token]!] }], {
          signal: new AbortController().signal,
        });
        nats -= next!.nats[0]!;
      }
    }
    expect(rows[0]).toMatchObject({ tokens: 9, windows: ends.length });
    expect((rows[0] as unknown as { nats: number }).nats).toBeCloseTo(nats, 10);
  });

  it("returns one intermediate for a text longer than its windows", async () => {
    const { intermediates, actionMasks } = await evaluate(long(), fakeModel({ contextLength: 4 }), {
      returnIntermediates: true,
    });
    const letters = Int32Array.from([..."abcdefghij"].map((letter) => letter.charCodeAt(0)));
    expect(intermediates).toEqual([[letters, new Uint8Array(10).fill(1)]]);
    // The first token is the context of the others.
    expect(actionMasks).toEqual([new Uint8Array(10).fill(1, 1)]);
  });

  it("rejects a stride longer than the context", async () => {
    await expect(measure(long(5), fakeModel({ contextLength: 4 }))).rejects.toThrow(
      "perplexityEvaluation options.stride: got 5, expected at most 4, the model's context length",
    );
  });
});

it("rejects invalid options and a diverged model", async () => {
  const options = { name: "p", documents: texts("ab"), text: ({ text }: { readonly text: string }) => text };
  expect(() => perplexityEvaluation({ ...options, stride: 0 })).toThrow(
    "perplexityEvaluation options.stride: got 0",
  );
  expect(() => perplexityEvaluation({ ...options, prefixToken: -1 })).toThrow("prefixToken: got -1");
  expect(() => perplexityEvaluation({ ...options, text: "x" as never })).toThrow('text: got "x"');
  await expect(measure(perplexityEvaluation(options), costing({ a: NaN }))).rejects.toThrow(
    "question t0: got log-probabilities [NaN]",
  );
});
