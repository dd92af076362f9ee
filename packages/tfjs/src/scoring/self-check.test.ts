import * as tf from "@tensorflow/tfjs";
import { beforeAll, expect, it } from "vitest";
import { fakeTokenizer } from "@periodic-eval/testing";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { everySegment, type TokenBlock } from "../causal-lm/incremental.ts";
import { tinyLM, withoutIncremental } from "../causal-lm/tiny-lm.test-data.ts";
import { inMemory } from "../in-memory.ts";

const call = { signal: new AbortController().signal };
beforeAll(async () => void (await tf.setBackend("cpu")));

/** A model that changes its blocks before it reads them. */
function changed(change: (block: TokenBlock) => Partial<TokenBlock>, options = {}): CausalLM {
  const lm = tinyLM(options);
  const { extend } = lm.incremental;
  return {
    ...lm,
    incremental: { ...lm.incremental, extend: (block, rest) => extend({ ...block, ...change(block) }, rest) },
  };
}

it.each([48, 12, 5])("accepts a correct model with context length %d", async (contextLength) => {
  await inMemory(tinyLM({ contextLength }), fakeTokenizer()).check!(call);
});

it("accepts a model whose sizes are getters of its class", async () => {
  const lm = tinyLM({ contextLength: 12 });
  class Getters implements CausalLM {
    get vocabSize() {
      return lm.vocabSize;
    }
    get contextLength() {
      return lm.contextLength;
    }
    get incremental() {
      return lm.incremental;
    }
    logits = lm.logits;
    logitsAt = lm.logitsAt;
  }
  await inMemory(new Getters(), fakeTokenizer()).check!(call);
});

it.each([
  [
    "choices that attend to each other",
    ({ segments }: TokenBlock) => ({ lastSegments: segments.map((one) => (one < 0 ? one : everySegment)) }),
  ],
  [
    "positions that continue over the row",
    ({ positions }: TokenBlock) => ({ positions: positions.map((_, at) => at) }),
  ],
])("rejects a model with %s, unless it has no incremental reading", async (_, change) => {
  const lm = changed(change);
  await expect(inMemory(lm, fakeTokenizer()).check!(call)).rejects.toThrow(
    /packed scores that differ from plain ones by up to/,
  );
  await inMemory(withoutIncremental(lm), fakeTokenizer()).check!(call);
});

it("leaves a model whose scores do not repeat to the probe that warns of it", async () => {
  const { logitsAt, ...lm } = tinyLM();
  let call = 0;
  const noise = (logits: tf.Tensor2D) =>
    tf.tidy(
      () => tf.add(logits, tf.randomNormal(logits.shape, 0, 0.1, "float32", (call += 1))) as tf.Tensor2D,
    );
  const noisy = {
    ...lm,
    logitsAt: (ids: tf.Tensor2D, rows: tf.Tensor1D) => tf.tidy(() => noise(logitsAt(ids, rows))),
  };
  await inMemory(noisy, fakeTokenizer()).check!({ signal: new AbortController().signal });
});

it("accepts a model that has diverged", async () => {
  const lm = tinyLM();
  lm.embedding.assign(tf.fill(lm.embedding.shape, NaN));
  await inMemory(lm, fakeTokenizer()).check!(call);
});
