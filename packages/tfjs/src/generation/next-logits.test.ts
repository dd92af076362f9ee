import * as tf from "@tensorflow/tfjs";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { type Growing, nextLogits } from "./next-logits.ts";
import { tinyLM } from "../causal-lm/tiny-lm.test-data.ts";

describe("nextLogits", () => {
  const lm = tinyLM({ vocabSize: 12, contextLength: 200 });
  const { incremental: _, ...plain } = lm;
  beforeAll(async () => void (await tf.setBackend("cpu")));
  afterAll(() => lm.dispose());

  /** Returns all logits of sequences that take the tokens of `drawn` and end after them. */
  function walk(
    model: CausalLM,
    prompts: readonly (readonly number[])[],
    drawn: readonly (readonly number[])[],
    maxBatchTokens = 200,
  ) {
    const reader = nextLogits(model, maxBatchTokens);
    const growing = prompts.map((prompt, index) => ({ prompt, ids: [] as number[], index }));
    const logits: number[][] = prompts.map(() => []);
    let rows = growing;
    while (rows.length > 0) {
      const step = reader.next(rows satisfies readonly Growing[]);
      const values = step.arraySync();
      step.dispose();
      rows.forEach(({ index }, row) => logits[index]!.push(...values[row]!));
      for (const { ids, index } of rows) ids.push(drawn[index]![ids.length] ?? 0);
      rows = rows.filter(({ ids, index }) => ids.length <= drawn[index]!.length);
    }
    reader.dispose();
    return logits;
  }

  it("equals reading whole sequences for any prompts and ends, and leaves no tensor", () => {
    const token = fc.integer({ min: 0, max: 11 });
    const prompt = fc.array(token, { minLength: 1, maxLength: 12 });
    // Longer than the tail, so that the tail is joined in between.
    const ending = fc.array(token, { maxLength: 45 });
    const before = tf.memory().numTensors;
    fc.assert(
      fc.property(
        fc.array(token, { maxLength: 10 }),
        fc.array(fc.tuple(prompt, ending), { minLength: 1, maxLength: 4 }),
        // Some prompts occur more than once.
        fc.array(fc.nat(3), { maxLength: 3 }),
        fc.integer({ min: 1, max: 60 }),
        (shared, rows, again, maxBatchTokens) => {
          const prompts = [...rows, ...again.map((index) => rows[index % rows.length]!)].map(([own]) => [
            ...shared,
            ...own,
          ]);
          const drawn = prompts.map((_own, index) => rows[index % rows.length]![1]);
          const [cached, whole] = [walk(lm, prompts, drawn, maxBatchTokens), walk(plain, prompts, drawn)];
          cached.forEach((values, index) => {
            expect(values.length).toBe(whole[index]!.length);
            const far = values.map((value, at) => Math.abs(value - whole[index]![at]!));
            expect(Math.max(...far)).toBeLessThan(1e-5);
          });
        },
      ),
      { numRuns: 30 },
    );
    expect(tf.memory().numTensors).toBe(before);
  });

  it("reads a large cache with a tail", () => {
    const prompts = Array.from({ length: 22 }, (_, row) =>
      Array.from({ length: 96 + (row % 3) }, (_1, at) => (at * row + row) % 12),
    );
    const drawn = prompts.map((_, row) =>
      Array.from({ length: 34 + (row % 5) }, (_1, at) => (at + row) % 12),
    );
    const before = tf.memory().numTensors;
    const [cached, whole] = [walk(lm, prompts, drawn), walk(plain, prompts, drawn)];
    const far = cached.flatMap((values, row) =>
      values.map((value, at) => Math.abs(value - whole[row]![at]!)),
    );
    expect(far.length).toBe(prompts.reduce((sum, _, row) => sum + (35 + (row % 5)) * 12, 0));
    expect(Math.max(...far)).toBeLessThan(1e-5);
    expect(tf.memory().numTensors).toBe(before);
  });

  it("reads a common prefix once, equal prompts once, and then one token per row", () => {
    const shared = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    lm.passes.length = 0;
    walk(
      lm,
      [
        [...shared, 1],
        [...shared, 2, 3],
        [...shared, 1],
      ],
      [[5], [6, 7], [8]],
    );
    expect(lm.passes).toEqual([
      [1, 9],
      [2, 2],
      [3, 1],
      [1, 1],
    ]);
    lm.passes.length = 0;
    walk(lm, [shared, shared], [[5], [6]]);
    expect(lm.passes).toEqual([
      [1, 9],
      [2, 1],
    ]);
  });
});
