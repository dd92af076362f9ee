import type { Sampling } from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs-core";
import { beforeAll, describe, expect, it } from "vitest";
import { drawToken, beginWriting } from "../../../tokenizers/src/writing.ts";
import { tinyLM } from "../../../tfjs/src/causal-lm/tiny-lm.test-data.ts";
import { drawFromEach } from "../../../tfjs/src/generation/draws.ts";
import { useBackend } from "../../../models/src/backend/use-backend.ts";
import { hasNative, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { charTokenizer } from "../../../models/src/tokenizer/char-tokenizer.ts";
import { hasNativeKernels } from "../../../models/src/ops/native.ts";

// Tests need `periodic-eval native`, which compiles the kernels.
if (hasNative) await useBackend({ backend: nativeBackend });

type Limits = Pick<Sampling, "temperature" | "topK" | "topP">;
/** A draw: its settings, and the random number. */
type Drawing = readonly [limits: Limits, share: number];

/** Draws a token per row on the backend, as generation does. */
async function drawnWithKernel(logits: tf.Tensor2D, drawings: readonly Drawing[]) {
  const rows = drawings.map(([limits, share]) => ({
    ...beginWriting({ prompt: [], room: 1, sampling: { ...limits, maxNewTokens: 1, seed: "" } }),
    random: () => share,
  }));
  return drawFromEach(tf.clone(logits), rows);
}

const drawnOnHost = (logits: tf.Tensor2D, drawings: readonly Drawing[]) =>
  drawings.map(([limits, share], row) => {
    const rowLogits = tf.tidy(() => tf.slice(logits, [row, 0], [1, -1]).dataSync<"float32">());
    return drawToken(rowLogits, { ...limits, maxNewTokens: 1, seed: "" }, () => share);
  });

const limits: readonly Omit<Limits, "temperature">[] = [
  {},
  { topK: 1 },
  { topK: 50 },
  { topP: 0.95 },
  { topK: 7, topP: 0.6 },
  { topP: 1e-9 },
];
const shares = [0, 0.1, 0.5, 0.77, 1 - 2 ** -53];

describe.runIf(hasNative && hasNativeKernels())("draws on native TensorFlow", () => {
  beforeAll(() => useBackend({ backend: nativeBackend }));

  it.each([1, 3, 8, 17, 1000, 49_152])(
    "from a vocabulary of %i have the bits of draws on the host",
    async (vocabulary) => {
      const scales = vocabulary > 1000 ? [1, 5] : [0, 1e-9, 1e-4, 1, 5, 300, 1e5];
      for (const scale of scales)
        for (const temperature of [1, 0.7, 2, 1e-3]) {
          // Each row has its own settings.
          const drawings = limits.flatMap((limit) =>
            shares.map((share): Drawing => [{ temperature, ...limit }, share]),
          );
          const shape: [number, number] = [drawings.length, vocabulary];
          const drawn = tf.tidy(() => tf.mul<tf.Tensor2D>(tf.randomNormal(shape, 0, 1, "float32", 3), scale));
          // Many equal logits, too.
          const rounded = tf.round<tf.Tensor2D>(drawn);
          for (const logits of [drawn, rounded])
            expect(await drawnWithKernel(logits, drawings)).toEqual(drawnOnHost(logits, drawings));
          tf.dispose([drawn, rounded]);
        }
    },
  );

  it("have the bits of the host where the exponential has branches", async () => {
    const near = (x: number, step: number) => Array.from({ length: 400 }, (_, i) => x + (i - 200) * step);
    // Half of ln 2, where fdlibm compares only the upper bits; 1.5 ln 2; numbers near 0; the end of the range.
    const at = [
      ...near(-0.346_573_590_75, 5e-12),
      ...near(-1.039_720_65, 1e-9),
      ...near(-(2 ** -28), 1e-11),
      ...near(-700, 0.05),
    ].filter((x) => x < 0);
    // The largest logit is so small that the difference of the two is the number, more exactly than a logit can be.
    const rows = at.map((x) => {
      const low = Math.fround(x);
      return [low - x, ...Array.from({ length: 10 }, () => low)];
    });
    const logits = tf.tensor2d(rows);
    const drawings = at.map((): Drawing => [{ temperature: 1 }, 0.6]);
    expect(await drawnWithKernel(logits, drawings)).toEqual(drawnOnHost(logits, drawings));
    logits.dispose();
  });

  it("leave out logits of −Infinity, and give NaN for a row with NaN or +Infinity", async () => {
    for (const special of [-Infinity, Number.NaN, Infinity])
      for (const index of [5, 39])
        for (const topP of [1, 0.5]) {
          const row = Array.from({ length: 40 }, (_, id) => (id === index ? special : Math.sin(id)));
          const logits = tf.tensor2d([row]);
          const drawings: Drawing[] = [[{ temperature: 1, topP }, 0.9]];
          const [kernel] = await drawnWithKernel(logits, drawings);
          if (special === -Infinity) expect([kernel]).toEqual(drawnOnHost(logits, drawings));
          else expect(kernel!.nats).toBeNaN();
          logits.dispose();
        }
  });

  it("leave no tensors", async () => {
    const logits = tf.zeros<tf.Rank.R2>([2, 5]);
    const before = tf.memory().numTensors;
    await drawnWithKernel(
      logits,
      shares.slice(0, 2).map((share): Drawing => [{ temperature: 1 }, share]),
    );
    expect(tf.memory().numTensors).toBe(before);
    logits.dispose();
  });

  it("read batches whose keys and values fit into 1.5 GiB", async () => {
    // Six sequences of 26 tokens do, two fit into 512 MiB.
    const wide = tinyLM({ vocabSize: 32, tokenBytes: 2 ** 29 / 60 });
    const tokenizer = charTokenizer("abcdefghijklmnopqrstuvwxyz012345");
    const ten = Array.from({ length: 10 }, (_, row) => ({
      prompt: { ids: [1, 2, 3, 4, 5, 6, 7] },
      sampling: { maxNewTokens: 20, temperature: 0, seed: String(row) },
    }));
    await inMemory(wide, tokenizer, { maxBatchTokens: 1 }).generate(ten, {
      signal: new AbortController().signal,
    });
    const widest = Math.max(...wide.passes.map(([rows]) => rows));
    wide.dispose();
    expect(widest).toBe(6);
  });
});
