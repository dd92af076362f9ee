// Compares the embedded model with lm-evaluation-harness.
import { fileURLToPath } from "node:url";
import { measure } from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { expect, it } from "vitest";
import { perplexityEvaluation, type PerplexityRow } from "./perplexity.ts";

const world = fileURLToPath(new URL("../../../cli/assets/micro-world", import.meta.url));

// lm-evaluation-harness 0.4.13, transformers 5.23.0:
// HFLM(pretrained=world, dtype="float32", device="cpu", max_length=16).loglikelihood_rolling([…]), of 23, 31 and 1 tokens.
const references = [
  ["Q: What is the capital of France? A: Paris.", 23, 2, -270.0640640258789],
  [
    "The cat sat on the mat and looked at the moon for a long while, thinking of fish.",
    31,
    2,
    -366.5003967285156,
  ],
  ["one", 1, 1, -12.910032272338867],
] as const;

it("scores texts in rolling windows of 16 within 1e-3 nats of the reference", async () => {
  await useBackend({ backend: "wasm" });
  const lm = await loadCausalLM(world);
  try {
    const evaluation = perplexityEvaluation({
      name: "rolling",
      documents: references.map(([text]) => ({ id: text.slice(0, 3), text })),
      text: ({ text }) => text,
      prefixToken: 1023,
    });
    const model = { ...inMemory(lm, await loadTokenizer(world)), contextLength: 16 };
    const { rows } = await measure(evaluation, model);
    for (const [text, tokens, windows, nats] of references) {
      const row = rows.find(({ id }) => id === text.slice(0, 3)) as PerplexityRow;
      expect(row).toMatchObject({ tokens, windows });
      expect(Math.abs(row.nats! + nats)).toBeLessThan(1e-3);
    }
  } finally {
    lm.dispose();
  }
});
