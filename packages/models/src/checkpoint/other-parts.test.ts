import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeSafetensors, type TensorToWrite } from "@periodic-eval/safetensors";
import * as tf from "@tensorflow/tfjs-core";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { useBackend } from "../backend/use-backend.ts";
import { loadLora } from "../lora/load-lora.ts";
import { withLora } from "../lora/with-lora.ts";
import { tinyConfigs } from "../testing/tiny-config.test-data.ts";
import { createCausalLM } from "./create-causal-lm.ts";
import { loadCausalLM } from "./load-causal-lm.ts";
import { tensorOf } from "./save.ts";
import { openTensors } from "./tensors.ts";

const root = temporaryFolder(afterAll);
beforeAll(async () => void (await useBackend({ backend: "cpu" })));
afterEach(() => void vi.restoreAllMocks());

/** The prefix of the layers and of the head in each layout, and the name of a tensor of the vision part. */
const layouts = {
  "transformers 5": ["model.language_model.", "lm_head", "model.vision_tower.x.weight"],
  "transformers 4": ["language_model.model.", "language_model.lm_head", "vision_tower.x.weight"],
  "the model without its head": ["language_model.", "lm_head", "vision_tower.x.weight"],
} as const;

const vision: Omit<TensorToWrite, "name"> = { shape: [2], values: () => Float32Array.of(5, 7) };
const input = () => tf.tensor2d([[1, 2, 3]], undefined, "int32");

describe.each(Object.entries(layouts))(
  "a multimodal checkpoint in the layout of %s",
  (name, [prefix, head, other]) => {
    const folder = join(root, name);
    const config = { ...tinyConfigs.gemma3, tie_word_embeddings: false };

    /** Writes the folder, and returns the logits of its text part. */
    async function write(): Promise<Float32Array> {
      const created = createCausalLM(config, { seed: "a", initStd: 0.3 });
      await created.save(folder);
      const tensors = created.weights().map((weight) => {
        const renamed = weight.name.replace("model.language_model.", prefix).replace("lm_head", head);
        return { ...tensorOf(weight), name: renamed };
      });
      const positions = {
        name: `${other}_ids`,
        shape: [1],
        dtype: "I32" as const,
        values: () => Int32Array.of(1),
      };
      await writeSafetensors(join(folder, "model.safetensors"), [
        ...tensors,
        { ...vision, name: other },
        positions,
      ]);
      await writeFile(join(folder, "preprocessor_config.json"), "{}");
      const logits = tf.tidy(() => created.logits(input()).dataSync() as Float32Array);
      created.dispose();
      return logits;
    }

    it("is loaded without its other parts, with a note, and keeps them when it is saved", async () => {
      const expected = await write();
      const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      const model = await loadCausalLM(folder);
      expect(warning.mock.calls).toEqual([
        [
          `${folder}: only the text part is loaded, without 1 tensors of other parts.`,
          { code: "PERIODIC_EVAL_CONFIG" },
        ],
      ]);
      expect(tf.tidy(() => model.logits(input()).dataSync())).toEqual(expected);
      const target = join(root, `${name} saved`);
      await model.save(target);
      const [before, after] = [await openTensors(folder), await openTensors(target)];
      expect([...after.tensors.keys(), `${other}_ids`].sort()).toEqual([...before.tensors.keys()].sort());
      expect(await after.read(other)).toEqual(Float32Array.of(5, 7));
      for (const each of [before, after]) await each.close();
      model.dispose();
      const again = await loadCausalLM(target);
      expect(tf.tidy(() => again.logits(input()).dataSync())).toEqual(expected);
      again.dispose();
    });

    it("has the modules of transformers 5 in adapters, and keeps its names when an adapter is merged", async () => {
      await write();
      vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      const model = await loadCausalLM(folder);
      const lora = withLora(model, { rank: 1, targetModules: ["q_proj", "lm_head"] });
      for (const { variable } of lora.weights())
        if (lora.trainables().includes(variable)) variable.assign(tf.ones(variable.shape));
      const adapter = join(root, `${name} adapter`);
      await lora.save(adapter);
      const names = lora.weights().map(({ name }) => name);
      expect(names).toContain(
        "base_model.model.model.language_model.layers.1.self_attn.q_proj.lora_A.weight",
      );
      expect(names).toContain("base_model.model.lm_head.lora_B.weight");
      const expected = tf.tidy(() => lora.logits(input()).dataSync());
      const loaded = await loadLora(model, adapter);
      expect(tf.tidy(() => loaded.logits(input()).dataSync())).toEqual(expected);
      const target = join(root, `${name} merged`);
      await lora.saveMerged(target);
      const merged = await loadCausalLM(target);
      const difference = tf.tidy(
        () => tf.max(tf.abs(tf.sub(merged.logits(input()), tf.tensor(expected, [1, 3, 32])))).dataSync()[0]!,
      );
      expect(difference).toBeLessThan(1e-4);
      expect(merged.weights().map(({ name }) => name)).toEqual(model.weights().map(({ name }) => name));
      for (const each of [merged, loaded, lora, model]) each.dispose();
    });
  },
);

it("separates a tied head with an adapter under the name that the layout gives it", async () => {
  vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const folder = join(root, "tied");
  const created = createCausalLM(tinyConfigs.gemma3, { seed: "a", initStd: 0.3 });
  await created.save(folder);
  const tensors = created.weights().map((weight) => {
    return {
      ...tensorOf(weight),
      name: weight.name.replace("model.language_model.", "language_model.model."),
    };
  });
  await writeSafetensors(join(folder, "model.safetensors"), tensors);
  const model = await loadCausalLM(folder);
  const lora = withLora(model, { rank: 1, targetModules: ["lm_head"] });
  await lora.saveMerged(join(root, "untied"));
  const merged = await loadCausalLM(join(root, "untied"));
  expect(merged.weights().at(-1)!.name).toBe("language_model.lm_head.weight");
  for (const each of [merged, lora, model, created]) each.dispose();
});

it("reports keys without effect once when a model is loaded, and refuses them when one is created", async () => {
  const folder = join(root, "keys");
  const created = createCausalLM(tinyConfigs.llama, { seed: "a" });
  await created.save(folder);
  created.dispose();
  const config = { ...tinyConfigs.llama, gguf_type: 1, attention_dropout: 0.1 };
  await writeFile(join(folder, "config.json"), JSON.stringify(config));
  const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  (await loadCausalLM(folder)).dispose();
  expect(warning.mock.calls.map(([message]) => message)).toEqual([
    expect.stringMatching(/keys\/config\.json, attention_dropout: not used; the option/),
    expect.stringMatching(/keys\/config\.json, gguf_type: not used; transformers does not read/),
  ]);
  expect(() => createCausalLM(config, { seed: "a" })).toThrow(/attention_dropout: got 0.1/);
});
