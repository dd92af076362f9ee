import "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Sampling, Tokenizer } from "@periodic-eval/core";
import { fakeTokenizer } from "@periodic-eval/testing";
import { inMemory } from "../in-memory.ts";
import { type TinyLM, tinyLM } from "../causal-lm/tiny-lm.test-data.ts";

const call = { signal: new AbortController().signal };
const stopId = 31;
/** 32 ids, each a character; the last one ends a completion. */
const alphabet = "abcdefghijklmnopqrstuvwxyz .,!?";
const letters: Tokenizer = {
  ...fakeTokenizer(),
  stopIds: [stopId],
  encode: (text) => text.split("").map((letter) => alphabet.indexOf(letter)),
  decode: (ids) => ids.map((id) => alphabet[id] ?? "").join(""),
};
const prompts = ["a", "the ice melts", "zz", "why? ", "b.", "hello, you"];
const sampled = (seed: string, more: Partial<Sampling> = {}): Sampling => ({
  maxNewTokens: 20,
  temperature: 1,
  seed,
  ...more,
});
const asked = (more: Partial<Sampling> = {}) =>
  prompts.map((text) => ({
    prompt: { ids: letters.encode(text) },
    sampling: sampled(`seed of ${text}`, more),
  }));

describe.each(["cpu", "wasm"])("generate on %s", (backend) => {
  let lm: TinyLM;
  beforeAll(async () => {
    await tf.setBackend(backend);
    lm = tinyLM({ vocabSize: 32 });
  });
  afterAll(() => lm.dispose());

  it("generates the most likely tokens, as computed directly", async () => {
    const completions = await inMemory(lm, letters).generate(
      asked({ temperature: 0, maxNewTokens: 6 }),
      call,
    );
    completions.forEach(({ ids, tokenNats, text, finish }, i) => {
      const soFar = [...letters.encode(prompts[i]!)];
      ids!.forEach((id, at) => {
        const reference = lm.reference(soFar);
        expect(reference[id]).toBe(Math.max(...reference));
        expect(tokenNats![at]).toBeCloseTo(reference[id]!, 5);
        soFar.push(id);
      });
      const stopped = ids!.at(-1) === stopId;
      expect(finish).toBe(stopped ? "stop" : "length");
      expect(ids!.length).toBe(stopped ? ids!.indexOf(stopId) + 1 : 6);
      expect(text).toBe(letters.decode(ids!.filter((id) => id !== stopId)));
    });
  });

  it("samples the same in any batch, with nats of the model's distribution", async () => {
    const model = inMemory(lm, letters);
    const requests = asked({ topP: 0.9 });
    const before = tf.memory().numTensors;
    const together = await model.generate(requests, call);
    expect(tf.memory().numTensors).toBe(before);
    for (const [i, request] of requests.entries()) {
      const [alone] = await model.generate([request], call);
      expect(alone!.ids).toEqual(together[i]!.ids);
    }
    const reversed = await inMemory(lm, letters, { maxBatchTokens: 80 }).generate(
      requests.toReversed(),
      call,
    );
    expect(reversed.toReversed().map(({ text }) => text)).toEqual(together.map(({ text }) => text));
    const soFar = [...letters.encode(prompts[1]!)];
    together[1]!.ids!.forEach((id, at) => {
      expect(together[1]!.tokenNats![at]).toBeCloseTo(lm.reference(soFar)[id]!, 5);
      soFar.push(id);
    });
  });

  it("returns another completion for another seed", async () => {
    const prompt = { ids: letters.encode("a") };
    const texts = await inMemory(lm, letters).generate(
      ["1", "2", "1"].map((seed) => ({ prompt, sampling: sampled(seed) })),
      call,
    );
    expect(texts[0]).toEqual(texts[2]);
    expect(texts[0]!.ids).not.toEqual(texts[1]!.ids);
  });

  it("accepts greedy and sampled requests together and keeps their order", async () => {
    const model = inMemory(lm, letters);
    const mixed = asked().map((request, i) =>
      i % 2 ? request : { ...request, sampling: { ...request.sampling, temperature: 0 } },
    );
    const together = await model.generate(mixed, call);
    for (const [i, request] of mixed.entries())
      expect((await model.generate([request], call))[0]!.ids).toEqual(together[i]!.ids);
  });
});

describe("ends of a completion", () => {
  /** A model that recites the alphabet: after letter k comes k + 1, so the completion of "a" is "bcdef…". */
  const successor = () => {
    const { incremental: _, ...lm } = tinyLM({ vocabSize: 32 });
    const next = (ids: tf.Tensor) => tf.mul(tf.oneHot(tf.cast(tf.add(ids, 1), "int32"), 32), 20);
    return {
      ...lm,
      logits: (ids: tf.Tensor2D) => tf.tidy(() => next(ids) as tf.Tensor3D),
      logitsAt(ids: tf.Tensor2D, rows: tf.Tensor1D) {
        lm.passes.push(ids.shape);
        return tf.tidy(() => next(tf.gather(tf.reshape(ids, [-1]), rows)) as tf.Tensor2D);
      },
    };
  };
  const write = async (
    text: string,
    more: Partial<Sampling>,
    contextLength = 48,
    tokenizer: Tokenizer = letters,
  ) => {
    await tf.setBackend("cpu");
    const lm = { ...successor(), contextLength };
    const [completion] = await inMemory(lm, tokenizer).generate(
      [{ prompt: { ids: letters.encode(text) }, sampling: sampled("s", { temperature: 0, ...more }) }],
      call,
    );
    lm.dispose();
    return completion!;
  };

  it("ends before the first stop string, even within a token", async () => {
    expect(await write("a", { stop: ["zz", "ef", "d"] })).toMatchObject({
      text: "bc",
      finish: "stop",
      ids: [1, 2, 3],
    });
    // "ef" is complete at "f"; its "e" is not part of the text.
    expect(await write("a", { stop: ["ef"] })).toMatchObject({
      text: "bcd",
      finish: "stop",
      ids: [1, 2, 3, 4, 5],
    });
  });

  it("ends before a stop string with a special token, which the text does not contain", async () => {
    // The letter "e" is special: decoded as "<e>" with special tokens, else omitted.
    const shown = (id: number, specialTokens: boolean) => {
      if (alphabet[id] !== "e") return alphabet[id] ?? "";
      return specialTokens ? "<e>" : "";
    };
    const decode: Tokenizer["decode"] = (ids, { specialTokens = true } = {}) =>
      ids.map((id) => shown(id, specialTokens)).join("");
    const written = (stop: string) =>
      write("a", { stop: [stop], maxNewTokens: 8 }, 48, { ...letters, decode });
    expect(await written("<e>")).toMatchObject({ text: "bcd", finish: "stop", ids: [1, 2, 3, 4] });
    expect(await written("<e>f")).toMatchObject({ text: "bcd", finish: "stop", ids: [1, 2, 3, 4, 5] });
    expect(await written("d<e")).toMatchObject({ text: "bc", finish: "stop" });
  });

  it("ends at a stop id, which is in the ids and not in the text", async () => {
    expect(await write("!", {})).toMatchObject({ text: "?", finish: "stop", ids: [30, stopId] });
    expect(await write("?", {})).toMatchObject({ text: "", finish: "stop", ids: [stopId] });
  });

  it("ends at maxNewTokens and when the context is full", async () => {
    expect(await write("a", { maxNewTokens: 3 })).toMatchObject({ text: "bcd", finish: "length" });
    // A context of 4 reads a, b, c, d and draws e.
    expect(await write("a", { maxNewTokens: 9 }, 4)).toMatchObject({ text: "bcde", finish: "length" });
  });

  it("throws for a prompt longer than the context, and for an invalid sampling setting", async () => {
    await expect(write("abcdef", {}, 4)).rejects.toThrow(/a prompt of 6 tokens, expected at most 4/);
    await expect(write("a", { topP: 2 })).rejects.toThrow(/sampling.topP: got 2/);
  });

  it("drops finished sequences from the batch", async () => {
    await tf.setBackend("cpu");
    const lm = successor();
    const rows = ["a", "!"].map((text) => ({
      prompt: { ids: letters.encode(text) },
      sampling: sampled("s", { temperature: 0, maxNewTokens: 4 }),
    }));
    expect((await inMemory(lm, letters).generate(rows, call)).map(({ text }) => text)).toEqual(["bcde", "?"]);
    // "!" is followed by "?" and the stop id: two passes of two sequences, then two of one.
    expect(lm.passes).toEqual([
      [2, 1],
      [2, 2],
      [1, 3],
      [1, 4],
    ]);
    lm.dispose();
  });

  it("caches keys and values up to 512 MiB without compiled kernels", async () => {
    // Two sequences of 26 tokens fit into 512 MiB.
    const wide = tinyLM({ vocabSize: 32, tokenBytes: 2 ** 29 / 60 });
    const ten = Array.from({ length: 10 }, (_, row) => ({
      prompt: { ids: letters.encode("the ice") },
      sampling: sampled(String(row), { temperature: 0 }),
    }));
    await inMemory(wide, letters, { maxBatchTokens: 1 }).generate(ten, call);
    const widest = Math.max(...wide.passes.map(([rows]) => rows));
    wide.dispose();
    expect(widest).toBe(2);
  });

  it("generates the same beyond the reach as alone, and leaves the cache to others", async () => {
    await tf.setBackend("cpu");
    const lm = tinyLM({ vocabSize: 32, reach: 12 });
    const requests = ["hello", "hello, you there", "why? ", "the ice melts", "zz"].flatMap((text, i) =>
      [0, 1].map((temperature) => ({
        prompt: { ids: letters.encode(text) },
        // "zz" and six more tokens stay within 12; the others grow beyond it or begin there.
        sampling: sampled(`${i}`, { temperature, maxNewTokens: text === "zz" ? 6 : 15 }),
      })),
    );
    const model = inMemory(lm, { ...letters, stopIds: [] });
    const before = tf.memory().numTensors;
    const together = await model.generate(requests, call);
    expect(tf.memory().numTensors).toBe(before);
    together.forEach(({ ids, tokenNats }, i) => {
      const soFar = [...requests[i]!.prompt.ids];
      expect(ids!.length).toBe(requests[i]!.sampling.maxNewTokens);
      ids!.forEach((id, at) => {
        expect(tokenNats![at]).toBeCloseTo(lm.reference(soFar)[id]!, 5);
        soFar.push(id);
      });
    });
    lm.passes.length = 0;
    await model.generate(requests.slice(0, 1), call);
    // Eight tokens with cached keys and values: the prompt, then one at a time. Seven more from whole sequences.
    expect(lm.passes).toEqual([
      [1, 5],
      ...Array.from({ length: 7 }, () => [1, 1]),
      ...Array.from({ length: 7 }, (_, at) => [1, 13 + at]),
    ]);
    lm.dispose();
  });

  it("caches sequences within the reach, next to one beyond it", async () => {
    const lm = tinyLM({ vocabSize: 32, reach: 12, contextLength: 48 });
    const short = Array.from({ length: 10 }, (_, row) => ({
      prompt: { ids: letters.encode("why") },
      sampling: sampled(String(row), { temperature: 0, maxNewTokens: 4 }),
    }));
    const long = {
      prompt: { ids: letters.encode("the ice melts") },
      sampling: sampled("l", { temperature: 0 }),
    };
    await inMemory(lm, { ...letters, stopIds: [] }, { maxBatchTokens: 32 }).generate([...short, long], call);
    const widest = Math.max(...lm.passes.map(([rows]) => rows));
    lm.dispose();
    expect(widest).toBe(10);
  });

  it("stops at an abort between tokens", async () => {
    const lm = tinyLM({ vocabSize: 32 });
    const controller = new AbortController();
    const writing = inMemory(lm, { ...letters, stopIds: [] }).generate(
      [{ prompt: { ids: [0] }, sampling: sampled("s", { maxNewTokens: 40 }) }],
      { signal: controller.signal },
    );
    setTimeout(() => controller.abort(), 0);
    await expect(writing).rejects.toMatchObject({ code: "aborted" });
    expect(lm.passes.length).toBeLessThan(40);
    lm.dispose();
  });
});
