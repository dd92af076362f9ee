import "@tensorflow/tfjs-backend-wasm";
import * as tf from "@tensorflow/tfjs";
import { expect, it } from "vitest";
import { fakeTokenizer } from "@periodic-eval/testing";
import { inMemory } from "./in-memory.ts";
import { tinyLM } from "./causal-lm/tiny-lm.test-data.ts";

const call = { signal: new AbortController().signal };
const ask = [{ prompt: { text: "a" }, candidates: [98] }];

it("reports the current backend, not the one at its creation", async () => {
  await tf.setBackend("cpu");
  const lm = tinyLM();
  const model = inMemory(lm, fakeTokenizer(), { name: "tiny" });
  await tf.setBackend("wasm");
  expect(model.identity).toEqual({
    name: "tiny",
    engine: "tfjs-wasm",
    dtype: "float32",
    weights: null,
    adapter: null,
    details: { tfjs: tf.version_core },
  });
  expect(model.contextLength).toBe(48);
  expect(model.base).toBeUndefined();
  lm.dispose();
});

it("measures live weights, of the adapted model and of its base", async () => {
  await tf.setBackend("cpu");
  const [adapted, base] = [tinyLM({ seed: "adapted" }), tinyLM({ seed: "base" })];
  const model = inMemory({ ...adapted, base }, fakeTokenizer());
  expect(model.identity.adapter).toBe("live");
  expect(model.base!.identity.adapter).toBeNull();
  expect(await model.base!.nextToken!(ask, call)).toEqual(
    await inMemory(base, fakeTokenizer()).nextToken(ask, call),
  );
  const [before] = await model.nextToken(ask, call);
  expect(before!.nats[0]).toBeCloseTo(adapted.reference([97])[98]!, 5);
  tf.tidy(() => adapted.head.assign(tf.zerosLike(adapted.head)));
  // All logits are 0: each of 261 tokens has p = 1/261, and the entropy is log 261.
  const [after] = await model.nextToken(ask, call);
  expect(after!.nats[0]).toBeCloseTo(-Math.log(261), 5);
  expect(after!.entropyNats).toBeCloseTo(Math.log(261), 5);
  tf.dispose([adapted.embedding, adapted.head, base.embedding, base.head]);
});

it("throws for a batch of 0 tokens and for unknown options", () => {
  const lm = tinyLM();
  expect(() => inMemory(lm, fakeTokenizer(), { nmae: "x" } as object)).toThrow('Did you mean "name"?');
  expect(() => inMemory(lm, fakeTokenizer(), { maxBatchTokens: 0 })).toThrow(/maxBatchTokens: got 0/);
  lm.dispose();
});
