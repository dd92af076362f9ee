import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { capabilityEvaluation, klEvaluation, leakageEvaluation, measure } from "@periodic-eval/core";
import type { KLRow } from "@periodic-eval/core/evaluations";
import { inMemory } from "@periodic-eval/tfjs";
import { fakeTokenizer } from "@periodic-eval/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { logProbsOf } from "../testing/log-probs.test-data.ts";
import { tinyConfig } from "../testing/tiny-config.test-data.ts";
import type { LoraLM } from "./lora-model.ts";
import { withLora } from "./with-lora.ts";

const tokenizer = fakeTokenizer();

describe("KL to the base of a Llama with an adapter", () => {
  let folder: string;
  let model: CheckpointLM;
  let lora: LoraLM;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "kl-"));
    await useBackend({ backend: "wasm" });
    const config = { ...tinyConfig, vocab_size: tokenizer.vocabSize, max_position_embeddings: 256 };
    model = createCausalLM(config, { seed: "a", initStd: 0.3 });
    lora = withLora(model, { rank: 2, alpha: 3 });
  });
  afterAll(async () => {
    lora.dispose();
    model.dispose();
    await rm(folder, { recursive: true });
  });

  it("is 0 for a new adapter, and equals the KL of the plain logits in both directions after a change", async () => {
    const questions = join(folder, "questions.jsonl");
    const record = (question: string) =>
      JSON.stringify({ question, choice_labels: ["A", "B"], choices: ["x", "y"], correct_answer: "A" });
    await writeFile(questions, ["One?", "Two and more?", "Three?"].map(record).join("\n"));
    const of = capabilityEvaluation({ questions });
    const evaluable = inMemory(lora, tokenizer);
    const before = tf.memory().numTensors;
    const zero = await measure(klEvaluation({ of }), evaluable);
    expect(zero.snapshot.metrics["kl_to_base"]!.value).toBeLessThanOrEqual(1e-6);
    expect(zero.snapshot.metrics["kl_to_base"]!.n).toBe(3);

    for (const [salt, variable] of lora.trainables().entries()) {
      const drawn = tf.randomNormal(variable.shape, 0, 0.5, "float32", salt + 1);
      variable.assign(drawn);
      drawn.dispose();
    }
    const { rows } = await measure(klEvaluation({ of }), evaluable);
    const items = (await of.items(evaluable)) as readonly { readonly id: string }[];
    const prompts = await of.prompts!(evaluable, items);
    for (const [at, row] of (rows as readonly KLRow[]).entries()) {
      const { ids } = tokenizer.render(prompts[at]!);
      const [now, then] = [lora, model].map((one) => logProbsOf(one, ids).at(-1)!);
      const kl = (p: readonly number[], q: readonly number[]) =>
        p.reduce((sum, nats, token) => sum + Math.exp(nats) * (nats - q[token]!), 0);
      expect(row.nats).toBeGreaterThan(0.01);
      expect(row.nats).toBeCloseTo(kl(now!, then!), 5);
      expect(row.reverseNats).toBeCloseTo(kl(then!, now!), 5);
    }
    expect(tf.memory().numTensors).toBe(before);
  });

  it("can be measured on the prompts of leakage", async () => {
    const of = leakageEvaluation({ questions: ["Who?"] });
    const { snapshot } = await measure(klEvaluation({ of, limit: 3 }), inMemory(lora, tokenizer));
    expect(snapshot["num_prompts"]).toBe(3);
  });
});
