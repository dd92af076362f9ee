import * as tf from "@tensorflow/tfjs";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { tinyLM, withoutIncremental } from "../causal-lm/tiny-lm.test-data.ts";
import { scorePacked } from "./score-packed.ts";
import type { ScoredSequence } from "@periodic-eval/tokenizers";
import { scoreSequences } from "./scoring.ts";

const { signal } = new AbortController();
const limits = { maxBatchTokens: 64, maxLogits: 2 ** 20 };

function score(lm: CausalLM, sequences: readonly ScoredSequence[], scoring: "packed" | "plain") {
  const scored = scoring === "packed" ? lm : withoutIncremental(lm);
  return scoreSequences(scored, sequences, { signal, withEntropy: true, limits });
}

describe("packed scoring", () => {
  const lm = tinyLM({ vocabSize: 12 });
  beforeAll(async () => void (await tf.setBackend("cpu")));
  afterAll(() => lm.dispose());

  it("returns the scores of sequences read separately, and leaves no tensor", async () => {
    const token = fc.integer({ min: 0, max: 11 });
    const choice = fc.record({
      own: fc.array(token, { maxLength: 5 }),
      // Picks at the last positions, possibly more than the tokens after the common beginning.
      picks: fc.array(fc.array(token, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 }),
    });
    const question = fc.record({
      context: fc.array(token, { minLength: 4, maxLength: 12 }),
      choices: fc.array(choice, { minLength: 1, maxLength: 5 }),
    });
    const before = tf.memory().numTensors;
    await fc.assert(
      fc.asyncProperty(
        fc.array(token, { maxLength: 14 }),
        fc.array(question, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 12, max: 60 }),
        async (shots, questions, maxLogits) => {
          const sequences = questions.flatMap(({ context, choices }) =>
            choices.map(({ own, picks }) => ({ ids: [...shots, ...context, ...own], picks })),
          );
          const packed = await scorePacked(lm, lm.incremental, sequences, {
            signal,
            withEntropy: true,
            limits: { ...limits, maxLogits },
          });
          const plain = await score(lm, sequences, "plain");
          expect(packed.tokens).toBeLessThanOrEqual(plain.tokens);
          packed.scores.forEach(({ nats, isTop, entropyNats }, index) => {
            const wanted = plain.scores[index]!;
            expect(nats.length).toBe(wanted.nats.length);
            nats.forEach((value, at) => expect(Math.abs(value - wanted.nats[at]!)).toBeLessThan(1e-5));
            expect(isTop).toEqual(wanted.isTop);
            expect(entropyNats.length).toBe(wanted.entropyNats.length);
            entropyNats.forEach((value, at) => expect(value).toBeCloseTo(wanted.entropyNats[at]!, 4));
          });
        },
      ),
      { numRuns: 60 },
    );
    expect(tf.memory().numTensors).toBe(before);
  });

  it("reads the common prefix once", async () => {
    const shots = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    const sequences = [
      [1, 2, 3],
      [4, 5, 6],
      [7, 8, 9],
    ].flatMap((context) => [10, 11].map((choice) => ({ ids: [...shots, ...context, choice], picks: [[0]] })));
    lm.passes.length = 0;
    const { tokens } = await score(lm, sequences, "packed");
    // The few-shot examples, then three rows, each with a question of three tokens and two choices.
    expect(lm.passes).toEqual([
      [1, 10],
      [3, 5],
    ]);
    expect(tokens).toBe(10 + 3 * 5);
  });

  it("disposes the common prefix when a batch fails", async () => {
    const broken = tinyLM({ vocabSize: 12 });
    const { incremental } = broken;
    const failing: CausalLM = {
      ...broken,
      incremental: {
        ...incremental,
        logitsOf: () => {
          throw new Error("the head is broken");
        },
      },
    };
    const sequences = [5, 6].map((last) => ({
      ids: [1, 2, 3, 4, 5, 6, 7, 8, last, 1, last, 2],
      picks: [[0]],
    }));
    const before = tf.memory().numTensors;
    await expect(score(failing, sequences, "packed")).rejects.toThrow("the head is broken");
    expect(tf.memory().numTensors).toBe(before);
    broken.dispose();
  });
});

describe("out of memory", () => {
  /** Throws TensorFlow's out-of-memory error for blocks with more tokens than fit. */
  function small(most: number): { readonly lm: CausalLM; readonly passes: number[]; dispose(): void } {
    const whole = tinyLM({ vocabSize: 12 });
    const passes: number[] = [];
    const refuse = (tokens: number) => {
      passes.push(tokens);
      if (tokens > most) throw new Error("OOM when allocating tensor with shape[64,512]");
    };
    const lm: CausalLM = {
      ...whole,
      logitsAt(ids, rows) {
        refuse(ids.size);
        return whole.logitsAt(ids, rows);
      },
      incremental: {
        ...whole.incremental,
        extend(block, options) {
          refuse(block.batch * block.length);
          return whole.incremental.extend(block, options);
        },
      },
    };
    return { lm, passes, dispose: () => whole.dispose() };
  }
  const sequences = Array.from({ length: 16 }, (_, i) => ({
    ids: [i % 12, (i * 5) % 12, 3, 4],
    picks: [[i % 12]],
  }));

  it.each(["packed", "plain"] as const)(
    "shrinks %s batches until they fit, and keeps that size",
    async (scoring) => {
      await tf.setBackend("cpu");
      const { lm: whole, passes, dispose } = small(20);
      const lm = scoring === "packed" ? whole : withoutIncremental(whole);
      const { scores } = await score(lm, sequences, "packed");
      const reference = tinyLM({ vocabSize: 12 });
      const wanted = await score(reference, sequences, scoring);
      scores.forEach(({ nats }, i) => expect(nats[0]).toBeCloseTo(wanted.scores[i]!.nats[0]!, 5));
      expect(passes.slice(0, 3)).toEqual([64, 32, 16]);
      passes.length = 0;
      await score(lm, sequences, "packed");
      expect(Math.max(...passes)).toBeLessThanOrEqual(16);
      reference.dispose();
      dispose();
    },
  );

  it("throws when a single row does not fit", async () => {
    await tf.setBackend("cpu");
    const { lm, dispose } = small(3);
    await expect(score(lm, sequences.slice(0, 1), "packed")).rejects.toMatchObject({
      code: "memory",
      where: "scoring, one row of 4 tokens",
      got: expect.stringContaining("OOM"),
    });
    dispose();
  });
});
