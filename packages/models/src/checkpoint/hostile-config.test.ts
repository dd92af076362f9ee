import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { deep, modelErrorOf, watchFilesAndMemory, watchTensors } from "../testing/hostile.test-data.ts";
import { tinyConfig } from "../testing/tiny-config.test-data.ts";
import { createCausalLM } from "./create-causal-lm.ts";
import { loadCausalLM } from "./load-causal-lm.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

vi.mock("node:fs/promises", async (original) => {
  const { recorded } = await import("../testing/opened-files.test-data.ts");
  return recorded(await original());
});

const folder = temporaryFolder(afterAll);
beforeAll(async () => {
  await useBackend({ backend: "cpu" });
  const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
  await model.save(folder);
  model.dispose();
});
watchFilesAndMemory(() => folder);
watchTensors();

const config = (content: unknown) =>
  writeFile(join(folder, "config.json"), typeof content === "string" ? content : JSON.stringify(content));
const loadError = () => modelErrorOf(() => loadCausalLM(folder));

describe("loading rejects a config.json", () => {
  it.each([
    [""],
    ["{"],
    ["null"],
    ["[]"],
    ["7"],
    ['"llama"'],
    ["{}"],
    ["NaN"],
    ["{'model_type': 'llama'}"],
    ['{"model_type": "llama", "vocab_size": NaN}'],
    ['{"model_type": "llama", "vocab_size": Infinity}'],
    ["\uFEFF{}"],
    [deep("[", "]", 1_000_000)],
    [`{"rope_scaling":${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}}`],
  ])("with the content %.40s", async (text) => {
    await config(text);
    expect((await loadError()).where).toContain("config.json");
  });
});

describe("loading rejects a config.json with", () => {
  const sizes =
    "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim".split(
      " ",
    );
  const wrong = [0, -1, 1.5, 1e308, 2 ** 53, 4096, "8", "NaN", true, [], {}, [8]];
  const cases = sizes.flatMap((key) => wrong.map((value) => [key, value] as const));
  it.each(cases.map(([key, value]) => [`${key}: ${JSON.stringify(value)}`, { [key]: value }] as const))(
    "%s",
    async (_, change) => {
      await config({ ...tinyConfig, ...change });
      await loadError();
    },
  );

  it.each(
    [
      { model_type: null },
      { model_type: 7 },
      { model_type: ["llama"] },
      { model_type: "__proto__" },
      { model_type: "toString" },
      { model_type: "x".repeat(100) },
      { rms_norm_eps: "1e-5" },
      { rms_norm_eps: -1 },
      { rms_norm_eps: [] },
      { rope_theta: "NaN" },
      { rope_theta: 0 },
      { rope_scaling: 7 },
      { rope_scaling: [] },
      { rope_scaling: {}, rope_parameters: "x" },
      { rope_scaling: { type: "xpos", factor: 2 } },
      { rope_scaling: { type: "linear", factor: 0 } },
      { rope_scaling: { rope_type: "llama3", factor: 8 } },
      { rope_scaling: { type: "linear", factor: 2, more: 1 } },
      { tie_word_embeddings: "no" },
      { tie_word_embeddings: 0 },
      { attention_bias: {} },
      { hidden_act: "swiglu2" },
      { hidden_act: {} },
      { head_dim: 3 },
      { num_key_value_heads: 3 },
      { max_position_embeddings: 0 },
      { max_position_embeddings: "16" },
      { sliding_window: 4 },
      { quantization_config: {} },
    ].map((change) => [JSON.stringify(change).slice(0, 60), change] as const),
  )("%s", async (_, change) => {
    await config({ ...tinyConfig, ...change });
    expect((await loadError()).where).toContain("config.json");
  });

  it.each(["attention_bias", "rope_scaling", "hidden_act", "model_type"])(
    "a long value of %s, and quotes its first characters",
    async (key) => {
      await config({ ...tinyConfig, [key]: "x".repeat(1e6) });
      expect((await loadError()).got).toBe(`"${"x".repeat(119)}…`);
    },
  );

  it.each(["vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size"])(
    "no key %s, because the default size does not fit the weights",
    async (key) => {
      const { [key as keyof typeof tinyConfig]: _, ...rest } = tinyConfig;
      await config(rest);
      await loadError();
    },
  );
});

it("changes neither a prototype nor the model for the key __proto__", async () => {
  await config(JSON.stringify(tinyConfig).replace("{", '{"__proto__":{"polluted":true},'));
  const model = await loadCausalLM(folder);
  expect(model.vocabSize).toBe(tinyConfig.vocab_size);
  expect(model).not.toHaveProperty("polluted");
  model.dispose();
  expect({}).not.toHaveProperty("polluted");
});

it.each([{ vocab_size: 1e9 }, { hidden_size: 1e6 }, { intermediate_size: 2 ** 27, num_hidden_layers: 30 }])(
  "a model whose weights no memory holds is not created: %o",
  async (sizes) => {
    const error = await modelErrorOf(async () => createCausalLM({ ...tinyConfig, ...sizes }, { seed: "s" }));
    expect(error.where).toContain("createCausalLM, config");
    expect(error.expected).toContain("at most");
  },
);
