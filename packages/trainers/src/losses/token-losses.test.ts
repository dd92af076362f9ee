import * as tf from "@tensorflow/tfjs-core";
import { namedStream } from "@periodic-eval/core/random";
import { createCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { collate } from "../data/collate.ts";
import { collatePairs, pairLogProbs } from "../dpo/pair-batch.ts";
import { heldOutLoss } from "../sft/sft-trainer.ts";
import { isThere, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { tinyLlama } from "../testing/tiny-run.test-data.ts";
import { crossEntropy, total, tokenLosses, type ScoredTokens } from "./token-losses.ts";

const backends = ["wasm", nativeBackend].filter(isThere);

describe.each(backends)("losses of held-out rows on %s", (backend) => {
  beforeAll(async () => void (await useBackend({ backend })));

  // 8 rows of 60 scored tokens: logits of 96 MB, six chunks of the head.
  const vocab_size = 50_000;
  const rows = Array.from({ length: 8 }, (_, row) => ({
    ids: Int32Array.from({ length: 61 }, (_, i) => (row * 7919 + i * 104_729) % vocab_size),
    scored: Int32Array.from({ length: 60 }, (_, i) => i + 1),
  }));
  const logitBytes = 8 * 60 * vocab_size * 4;

  /** Records the largest sum of temporary tensors, beyond those that existed before. */
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
    "equal those of the logits without ever holding all of them; tied head: %s",
    async (isTied) => {
      const config = { ...tinyLlama, vocab_size, tie_word_embeddings: isTied };
      const base = createCausalLM(config, { seed: "wide", initStd: 0.1, dropout: 0.5 });
      const adapted = withLora(base, { rank: 2, dropout: 0.5 });
      const onHead = withLora(base, { rank: 2, dropout: 0.5, targetModules: ["lm_head"] });
      const batch = collate(rows);
      const pairs = collatePairs(
        [0, 1, 2, 3].map((i) => ({ chosen: rows[i], rejected: rows[i + 4] })) as never,
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
      for (const model of [base, adapted, onHead]) {
        const heldOut = await peakOf(async () => heldOutLoss(model, [batch]));
        expect(
          Math.abs(heldOut.found.loss / (sums.reduce((sum, nats) => sum + nats, 0) / 480) - 1),
        ).toBeLessThan(1e-6);
        const read = await peakOf(async () => {
          const logProbs = pairLogProbs(model, pairs);
          const values = [...(await logProbs.data<"float32">())];
          logProbs.dispose();
          return values;
        });
        read.found.forEach((logProb, i) => expect(Math.abs(-logProb / sums[i]! - 1)).toBeLessThan(1e-6));
        // A chunk's logits, the adapter's addition and their sum, and on wasm the transposed head; in full it would be twice `logitBytes`.
        for (const { bytes } of [heldOut, read]) expect(bytes).toBeLessThan(0.6 * logitBytes);
      }
      onHead.dispose();
      adapted.dispose();
      base.dispose();
    },
  );

  it("equal those of full logits for a head with an adapter in losses, gradients and dropout, with less memory", async () => {
    const base = createCausalLM({ ...tinyLlama, vocab_size }, { seed: "wide", initStd: 0.1 });
    const model = withLora(base, { rank: 2, dropout: 0.5, targetModules: ["lm_head", "v_proj"] });
    for (const weight of model.trainables())
      tf.tidy(() => weight.assign(tf.randomNormal(weight.shape, 0, 0.1, "float32", 7)));
    const batch = collate(rows);
    const step = (losses: (tokens: ScoredTokens) => tf.Tensor1D) =>
      peakOf(async () => {
        const { value, grads } = tf.variableGrads(() => {
          const ids = tf.tensor2d(batch.ids, [...batch.shape], "int32");
          const [at, targets] = [tf.tensor1d(batch.rows, "int32"), tf.tensor1d(batch.targets, "int32")];
          return total(losses({ ids, rows: at, targets }));
        }, [...model.trainables()]);
        const values = [value, ...Object.values(grads)].map((tensor) => [...tensor.dataSync()]);
        tf.dispose([value, grads]);
        return values;
      });
    const byLosses = () => step((tokens) => tokenLosses(model, tokens, namedStream));
    // Graphs are only compiled without profiling.
    tf.tidy(
      () =>
        void tf.variableGrads(
          () => total(model.trainingLosses(...oneToken(), namedStream)),
          [...model.trainables()],
        ),
    );
    const whole = await step(({ ids, rows, targets }) =>
      crossEntropy(model.trainingLogits(ids, rows, namedStream), targets),
    );
    const found = await byLosses();
    expect(found.bytes).toBeLessThan(whole.bytes / 2);
    for (const [i, expected] of whole.found.entries()) {
      const scale = Math.max(...expected.map(Math.abs));
      expected.forEach((value, at) =>
        expect(Math.abs(found.found[i]![at]! - value) / scale).toBeLessThan(1e-5),
      );
    }
    expect((await byLosses()).found).toEqual(found.found);
    model.dispose();
    base.dispose();
  });
});

function oneToken(): [tf.Tensor2D, tf.Tensor1D, tf.Tensor1D] {
  return [tf.tensor2d([1, 2, 3], [1, 3], "int32"), tf.tensor1d([1], "int32"), tf.tensor1d([3], "int32")];
}
