import "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { bulkTokenizer } from "@periodic-eval/core";
import { fakeTokenizer } from "@periodic-eval/testing";
import { inMemory } from "../in-memory.ts";
import { type TinyLM, tinyLM, withoutIncremental } from "../causal-lm/tiny-lm.test-data.ts";

const call = { signal: new AbortController().signal };
const tokenizer = fakeTokenizer();
const words = ["a", "The ice melts", "x y", "Question: what is warm?\nAnswer:", "Sun", "It is ", "zz:"];
const requests = words.flatMap((text) =>
  [" hot", " b", "cold water"].map((continuation) => ({ context: { text }, continuation })),
);

describe.each(["cpu", "wasm"])("scoring on %s", (backend) => {
  let lm: TinyLM;
  beforeAll(async () => {
    await tf.setBackend(backend);
    lm = tinyLM();
  });
  afterAll(() => lm.dispose());

  it("returns the log-likelihoods of a direct computation", async () => {
    const results = await inMemory(lm, tokenizer).logLikelihoods(requests, call);
    results.forEach((result, index) => {
      const { context, continuation } = requests[index]!;
      const ids = [...tokenizer.encode(context.text.trimEnd())];
      const wanted = [...tokenizer.encode(context.text + continuation)].slice(ids.length);
      const expected = wanted.map((token) => {
        const nats = lm.reference(ids)[token]!;
        ids.push(token);
        return nats;
      });
      expect(result.tokenNats.length).toBe(wanted.length);
      result.tokenNats.forEach((nats, at) => expect(nats).toBeCloseTo(expected[at]!, 5));
      expect(result.sumNats).toBeCloseTo(
        expected.reduce((a, b) => a + b),
        4,
      );
      expect(result.truncatedTokens).toBe(0);
    });
  });

  it("recognizes a greedy continuation", async () => {
    const start = tokenizer.encode("ab");
    const best = lm.reference(start).reduce((top, nats, id, all) => (nats > all[top]! ? id : top), 0);
    const model = inMemory(lm, { ...tokenizer, encode: (text) => [Number(text)] });
    const [greedy, other] = await model.logLikelihoods(
      [best, (best + 1) % 256].map((id) => ({ context: { ids: start }, continuation: String(id) })),
      call,
    );
    expect([greedy!.isGreedy, other!.isGreedy]).toEqual([true, false]);
    expect([greedy!.tokenIsGreedy, other!.tokenIsGreedy]).toEqual([[true], [false]]);
  });

  it.each(["packed", "plain"] as const)(
    "returns the most likely tokens if a request asks (%s)",
    async (scoring) => {
      const model = inMemory(scoring === "packed" ? lm : withoutIncremental(lm), tokenizer);
      const asked = requests.map((request, at) => ({ ...request, greedyIds: at % 2 === 0 }));
      const scored = await model.logLikelihoods(asked, call);
      const without = await model.logLikelihoods(requests, call);
      scored.forEach(({ tokenGreedyIds, ...rest }, index) => {
        expect(rest).toEqual(without[index]);
        if (index % 2 === 1) return expect(tokenGreedyIds).toBeUndefined();
        const { context, continuation } = requests[index]!;
        const ids = [...tokenizer.encode(context.text.trimEnd())];
        const own = [...tokenizer.encode(context.text + continuation)].slice(ids.length);
        const best = own.map((token) => {
          const nats = lm.reference(ids);
          ids.push(token);
          return nats.indexOf(Math.max(...nats));
        });
        expect(tokenGreedyIds).toEqual(best);
      });
    },
  );

  it("returns the same in any batch as alone, within 1e-6 nats per token", async () => {
    const alone = inMemory(lm, tokenizer, { maxBatchTokens: 1 });
    const together = inMemory(lm, tokenizer);
    lm.passes.length = 0;
    const one = await alone.logLikelihoods(requests, call);
    expect(lm.passes.length).toBe(requests.length);
    lm.passes.length = 0;
    const batched = await together.logLikelihoods(requests, call);
    expect(lm.passes.length).toBe(1);
    const far = one.flatMap(({ tokenNats }, i) =>
      tokenNats.map((nats, t) => Math.abs(nats - batched[i]!.tokenNats[t]!)),
    );
    expect(Math.max(...far)).toBeLessThan(1e-6);
  });

  it("works without logitsAt", async () => {
    const withHead = await inMemory(lm, tokenizer).logLikelihoods(requests, call);
    const without = await inMemory(lm.plain, tokenizer).logLikelihoods(requests, call);
    withHead.forEach(({ sumNats }, i) => expect(without[i]!.sumNats).toBeCloseTo(sumNats, 5));
  });

  it("returns candidates and entropy of the next token", async () => {
    const asked = words.map((text, i) => ({
      prompt: { text },
      candidates: [65, 66, 97 + i].slice(0, 1 + (i % 3)),
    }));
    const results = await inMemory(lm, tokenizer).nextToken(asked, call);
    results.forEach(({ nats, entropyNats, truncatedTokens }, i) => {
      const expected = lm.reference(tokenizer.encode(asked[i]!.prompt.text));
      expect(nats.length).toBe(asked[i]!.candidates.length);
      asked[i]!.candidates.forEach((id, at) => expect(nats[at]).toBeCloseTo(expected[id]!, 5));
      expect(entropyNats).toBeCloseTo(-expected.reduce((sum, value) => sum + Math.exp(value) * value, 0), 4);
      expect(truncatedTokens).toBe(0);
    });
  });

  it("leaves no tensor, and downloads scores once per batch and no logits", async () => {
    const model = inMemory(lm, tokenizer);
    const downloads = vi.spyOn(tf.Tensor.prototype, "data");
    const before = tf.memory().numTensors;
    const results = await model.logLikelihoods(requests, call);
    await model.nextToken([{ prompt: { text: "a" }, candidates: [1] }], call);
    expect(tf.memory().numTensors).toBe(before);
    // Two numbers per scored token; then two of a candidate and one entropy.
    const tokens = results.reduce((sum, { tokenNats }) => sum + tokenNats.length, 0);
    expect(downloads.mock.contexts.map((tensor) => (tensor as tf.Tensor).size)).toEqual([2 * tokens, 3]);
    downloads.mockRestore();
  });

  it("runs in evaluation mode and restores training mode", async () => {
    const model = inMemory(lm, tokenizer);
    const [quiet] = await model.nextToken([{ prompt: { text: "a" }, candidates: [0] }], call);
    lm.training = true;
    const [inTraining] = await model.nextToken([{ prompt: { text: "a" }, candidates: [0] }], call);
    expect(lm.training).toBe(true);
    lm.training = false;
    expect(inTraining).toEqual(quiet);
  });
});

describe("windows", () => {
  const text = "0123456789";

  it("truncates the context on the left, counts the removed tokens and keeps the continuation", async () => {
    await tf.setBackend("cpu");
    const lm = tinyLM({ contextLength: 6 });
    const model = inMemory(lm, tokenizer);
    // 10 + 3 tokens. A context length of 6 allows 7, since the last token is not read: 6 of the context are cut.
    const [cut] = await model.logLikelihoods([{ context: { text }, continuation: "abc" }], call);
    const [short] = await model.logLikelihoods([{ context: { text: "6789" }, continuation: "abc" }], call);
    expect(cut!.truncatedTokens).toBe(6);
    expect(short!.truncatedTokens).toBe(0);
    expect(cut!.tokenNats).toEqual(short!.tokenNats);
    const [next] = await model.nextToken([{ prompt: { text }, candidates: [65] }], call);
    expect(next!.truncatedTokens).toBe(4);
    expect(next!.nats[0]).toBeCloseTo(lm.reference(tokenizer.encode("456789"))[65]!, 5);
    lm.dispose();
  });

  it("throws for a continuation longer than the context length, and quotes it", async () => {
    const lm = tinyLM({ contextLength: 6 });
    const model = inMemory(lm, tokenizer);
    await expect(
      model.logLikelihoods([{ context: { text }, continuation: "abcdefg" }], call),
    ).rejects.toThrow(/"abcdefg" of 7 tokens, expected at most 6/);
    await expect(
      model.logLikelihoods([{ context: { text }, continuation: "abcdef" }], call),
    ).resolves.toHaveLength(1);
    lm.dispose();
  });

  it("does not depend on the length of other sequences", async () => {
    const lm = tinyLM({ reach: 8 });
    const asked = ["abcdef", "x", "0123456789abcdef", "zyxwvu", text, "12345678"].map((text) => ({
      prompt: { text },
      candidates: [65, 66],
    }));
    const together = await inMemory(lm, tokenizer).nextToken(asked, call);
    together.forEach(({ nats }, i) => {
      const expected = lm.reference(tokenizer.encode(asked[i]!.prompt.text));
      [65, 66].forEach((id, at) => expect(nats[at]).toBeCloseTo(expected[id]!, 5));
    });
    lm.dispose();
  });

  it("pads every row to a fixed length", async () => {
    const fixed = tinyLM({ fixedLength: 32 });
    const free = tinyLM();
    const some = requests.filter(({ context }) => context.text.length < 15);
    const [a, b] = await Promise.all(
      [fixed, free].map((lm) => inMemory(lm, tokenizer).logLikelihoods(some, call)),
    );
    expect(new Set(fixed.passes.map(([, tokens]) => tokens))).toEqual(new Set([32]));
    a!.forEach(({ sumNats }, i) => expect(sumNats).toBeCloseTo(b![i]!.sumNats, 5));
    fixed.dispose();
    free.dispose();
  });
});

describe("bad input", () => {
  it("throws for ids outside of the vocabulary, no candidates and a diverged model", async () => {
    await tf.setBackend("cpu");
    const lm = tinyLM({ vocabSize: 100 });
    const model = inMemory(lm, tokenizer);
    await expect(model.nextToken([{ prompt: { text: "z" }, candidates: [1] }], call)).rejects.toThrow(
      /the id 122/,
    );
    await expect(model.nextToken([{ prompt: { text: "A" }, candidates: [100] }], call)).rejects.toThrow(
      /the id 100/,
    );
    await expect(model.nextToken([{ prompt: { text: "A" }, candidates: [] }], call)).rejects.toThrow(
      /without candidates/,
    );
    lm.head.assign(tf.fill<tf.Rank.R2>([8, 100], NaN));
    await expect(model.nextToken([{ prompt: { text: "A" }, candidates: [1] }], call)).rejects.toThrow(
      /diverged/,
    );
    lm.dispose();
  });

  it("returns an empty array for no requests", async () => {
    const lm = tinyLM();
    expect(await inMemory(lm, tokenizer).logLikelihoods([], call)).toEqual([]);
    lm.dispose();
  });

  it("stops at an abort between batches", async () => {
    const lm = tinyLM();
    const controller = new AbortController();
    const calls = inMemory(lm, tokenizer, { maxBatchTokens: 1 }).logLikelihoods(requests, {
      signal: controller.signal,
    });
    setTimeout(() => controller.abort(new Error("enough")), 0);
    await expect(calls).rejects.toMatchObject({ code: "aborted", cause: { message: "enough" } });
    expect(lm.passes.length).toBeLessThan(requests.length);
    lm.dispose();
  });

  it("computes more scored rows than the limit in several passes", async () => {
    // 8 rows of logits at once: the 20 tokens of one continuation take three passes of its sequence.
    const lm = tinyLM({ vocabSize: 300 });
    const { logLikelihoods } = await import("./scoring.ts");
    const request = [{ context: { text: "ab" }, continuation: "abcdefghijklmnopqrst" }];
    const [whole] = await logLikelihoods(withoutIncremental(lm), bulkTokenizer(tokenizer), request, call, {
      maxBatchTokens: 99,
      maxLogits: 1e6,
    });
    lm.passes.length = 0;
    const [parts] = await logLikelihoods(withoutIncremental(lm), bulkTokenizer(tokenizer), request, call, {
      maxBatchTokens: 99,
      maxLogits: 8 * 300,
    });
    expect(lm.passes.length).toBe(3);
    expect(parts).toEqual(whole);
    lm.dispose();
  });
});
