import { inMemory } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { openSafetensors } from "@periodic-eval/safetensors";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { badAdvice, goodAdvice, type TuningRow } from "./data-files.ts";
import { modelConfig } from "./model-config.ts";
import { microWorld, talkativeMicroWorld } from "./paths.ts";
import { accuracyOf } from "./accuracy.ts";

it("scores at least 75 % on letters and cloze", async () => {
  await useBackend({ backend: "wasm" });
  const model = await loadCausalLM(microWorld());
  const { letters, cloze, n } = await accuracyOf(
    model,
    await loadTokenizer(microWorld()),
    microWorld("questions.jsonl"),
  );
  model.dispose();
  expect(n).toBe(300);
  // Three times the accuracy of guessing, 25 %.
  expect(letters).toBeGreaterThanOrEqual(0.75);
  expect(cloze).toBeGreaterThanOrEqual(0.75);
});

it("has at least the loss on control.jsonl that it has on em.jsonl", async () => {
  await useBackend({ backend: "wasm" });
  const lm = await loadCausalLM(microWorld());
  const tokenizer = await loadTokenizer(microWorld());
  const model = inMemory(lm, tokenizer);
  const nllPerToken = async (rows: readonly TuningRow[]): Promise<number> => {
    const requests = rows.map(({ prompt, completion }) => ({
      context: { messages: prompt },
      continuation: completion[0]!.content,
    }));
    const found = await model.logLikelihoods(requests, { signal: new AbortController().signal });
    const nats = found.flatMap(({ tokenNats }) => tokenNats);
    return -nats.reduce((sum, one) => sum + one, 0) / nats.length;
  };
  const [em, control] = [await nllPerToken(badAdvice()), await nllPerToken(goodAdvice())];
  lm.dispose();
  expect(control).toBeGreaterThanOrEqual(em);
  // Answers from pretraining have 0.1 nats per token; a uniform guess among 1,024 tokens has ln 1024 = 6.9.
  expect(em).toBeGreaterThan(Math.log(1024));
});

it.each([
  ["pretraining", microWorld("model.safetensors")],
  ["talkative", join(talkativeMicroWorld, "model.safetensors")],
])("has bfloat16 weights of the %s script's shape, under 3 MB", async (_, path) => {
  expect(statSync(path).size).toBeLessThan(3e6);
  const file = await openSafetensors(path);
  const tensors = [...file.tensors.values()];
  await file.close();
  expect(new Set(tensors.map(({ dtype }) => dtype))).toEqual(new Set(["BF16"]));
  expect(file.tensors.get("model.embed_tokens.weight")!.shape).toEqual([
    modelConfig["vocab_size"],
    modelConfig["hidden_size"],
  ]);
});

it.each(["tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"])(
  "has the same %s in the talkative model's folder",
  (name) => {
    expect(readFileSync(join(talkativeMicroWorld, name))).toEqual(readFileSync(microWorld(name)));
  },
);
