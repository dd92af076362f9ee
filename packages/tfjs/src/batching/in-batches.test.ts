import { expect, it } from "vitest";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { inBatches } from "./batches.ts";

const signal = new AbortController().signal;
const budget = { maxTokens: 64, maxScoredRows: Infinity, fixedLength: null, reach: Infinity };

const model = (): CausalLM => ({
  vocabSize: 2,
  contextLength: 4,
  logits() {
    throw new Error("nobody reads");
  },
});

/** Does `rows` rows of four tokens in batches of at most 64, of which `most` fit into memory; gives the batches tried. */
async function tried(lm: CausalLM, where: string, rows: number, most: number): Promise<number[]> {
  const sizes: number[] = [];
  const costs = Array.from({ length: rows }, () => ({ tokens: 4, scoredRows: 1 }));
  const done: number[] = [];
  await inBatches(lm, costs, budget, { signal, where }, async (batch) => {
    sizes.push(4 * batch.length);
    if (4 * batch.length > most) throw new Error("OOM");
    done.push(...batch);
  });
  expect(done.toSorted((a, b) => a - b)).toEqual(costs.map((_, index) => index));
  return sizes;
}

it("remembers a size that did not fit per kind of work and per model", async () => {
  const [lm, other] = [model(), model()];
  expect(await tried(lm, "generate", 16, 16)).toEqual([64, 32, 16, 16, 16, 16]);
  expect(await tried(lm, "scoring", 16, 64)).toEqual([64]);
  expect(await tried(other, "generate", 16, 64)).toEqual([64]);
  expect(await tried(lm, "generate", 16, 64)).toEqual([16, 16, 16, 16]);
});

it("doubles batches after sixteen that fit, and halves them again if memory is still short", async () => {
  const lm = model();
  // 64 and 32 tokens fail. After sixteen batches of 16 it tries 32, and after sixteen of those 64.
  const sixteen = (size: number) => Array.from({ length: 16 }, () => size);
  expect(await tried(lm, "scoring", 72, 16)).toEqual([64, 32, ...sixteen(16), 32, 16, 16]);
  expect(await tried(lm, "scoring", 14 * 4 + 16 * 8 + 16, 64)).toEqual([
    ...sixteen(16).slice(2),
    ...sixteen(32),
    64,
  ]);
});
