import * as tf from "@tensorflow/tfjs-core";
import { createCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { collate } from "../data/collate.ts";
import { collatePairs, pairLogProbs } from "../dpo/gradients.ts";
import { heldOutLoss } from "../sft/held-out-loss.ts";
import { isThere } from "../testing/engines.ts";
import { tinyLlama } from "../testing/tiny-run.ts";
import { crossEntropy } from "./cross-entropy.ts";

const engines = (["wasm", "tfjs-node"] as const).filter(isThere);

describe.each(engines)("losses of rows that are not trained on, on %s", (backend) => {
  beforeAll(async () => void (await useBackend({ backend })));

  // 4 rows of 60 scored tokens: logits of 48 MB, three chunks of the head.
  const vocab_size = 50_000;
  const rows = Array.from({ length: 4 }, (_, row) => ({
    ids: Int32Array.from({ length: 61 }, (_, i) => (row * 7919 + i * 104_729) % vocab_size),
    scored: Int32Array.from({ length: 60 }, (_, i) => i + 1),
  }));
  const logitBytes = 4 * 60 * vocab_size * 4;

  /** The largest sum of tensors on the way, beyond those that were there. */
  async function peakOf<T>(run: () => Promise<T>): Promise<{ readonly found: T; readonly bytes: number }> {
    const before = tf.memory();
    let found: T;
    const { peakBytes } = await tf.profile(async () => {
      found = await run();
      return [];
    });
    expect(tf.memory().numTensors).toBe(before.numTensors);
    return { found: found!, bytes: peakBytes - before.numBytes };
  }

  it.each([true, false])(
    "are those of the logits, which never exist whole; tied head: %s",
    async (isTied) => {
      const config = { ...tinyLlama, vocab_size, tie_word_embeddings: isTied };
      const base = createCausalLM(config, { seed: "wide", initStd: 0.1, dropout: 0.5 });
      const adapted = withLora(base, { rank: 2, dropout: 0.5 });
      const batch = collate(rows);
      const pairs = collatePairs(
        [0, 1].map((i) => ({ chosen: rows[i], rejected: rows[i + 2] })) as never,
        base,
      );
      const expected = tf.tidy(() => {
        const ids = tf.tensor2d(batch.ids, [...batch.shape], "int32");
        const logits = base.logitsAt(ids, tf.tensor1d(batch.rows, "int32"));
        return [...crossEntropy(logits, tf.tensor1d(batch.targets, "int32")).dataSync()];
      });
      const sums = rows.map((_, i) =>
        expected.slice(60 * i, 60 * (i + 1)).reduce((sum, nats) => sum + nats, 0),
      );
      for (const model of [base, adapted]) {
        const heldOut = await peakOf(async () => heldOutLoss(model, [batch]));
        expect(
          Math.abs(heldOut.found.loss / (sums.reduce((sum, nats) => sum + nats, 0) / 240) - 1),
        ).toBeLessThan(1e-6);
        const read = await peakOf(async () => {
          const logProbs = pairLogProbs(model, pairs);
          const values = [...(await logProbs.data<"float32">())];
          logProbs.dispose();
          return values;
        });
        read.found.forEach((logProb, i) => expect(Math.abs(-logProb / sums[i]! - 1)).toBeLessThan(1e-6));
        // A chunk's logits and probabilities, and on wasm the head transposed; whole, they would be twice `logitBytes`.
        for (const { bytes } of [heldOut, read]) expect(bytes).toBeLessThan(0.9 * logitBytes);
      }
      adapted.dispose();
      base.dispose();
    },
  );
});
