import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { openSafetensors } from "@periodic-eval/safetensors";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../../backend/use-backend.ts";
import { loadCausalLM } from "../../checkpoint/load-causal-lm.ts";
import { largestDifference } from "../../testing/largest-difference.test-data.ts";
import { askPython, needsPython, pythonHas } from "../../testing/python.test-data.ts";

const tolerance = 2e-4;
const [oldContext, context] = [64, 256];
const theta = 100;
const llama = {
  model_type: "llama",
  vocab_size: 64,
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  head_dim: 32,
  max_position_embeddings: context,
  initializer_range: 0.2,
  rms_norm_eps: 1e-6,
};

const original = { original_max_position_embeddings: oldContext };
const yarn = { rope_type: "yarn", factor: 4, ...original };
const scalings: readonly (readonly [name: string, rope: Readonly<Record<string, unknown>>])[] = [
  ["linear", { rope_type: "linear", factor: 4 }],
  ["dynamic", { rope_type: "dynamic", factor: 4 }],
  ["llama3", { rope_type: "llama3", factor: 4, low_freq_factor: 1, high_freq_factor: 4, ...original }],
  ["yarn", yarn],
  ["yarn over the whole context", { rope_type: "yarn", factor: 4 }],
  ["yarn with turns of its own, not truncated", { ...yarn, beta_fast: 4, beta_slow: 1.5, truncate: false }],
  ["yarn with its own attention factor", { ...yarn, attention_factor: 1.7 }],
  ["yarn with mscale", { ...yarn, mscale: 0.7, mscale_all_dim: 1.3 }],
];

/** The places of rotary options in transformers 4 and 5. */
const layouts: Readonly<Record<string, (rope: Readonly<Record<string, unknown>>) => object>> = {
  "transformers 5": (rope) => ({ rope_parameters: { ...rope, rope_theta: theta } }),
  "transformers 4": (rope) => ({ rope_scaling: rope, rope_theta: theta }),
  // The key of the kind before 4.43, for linear and dynamic.
  "early transformers 4": ({ rope_type, ...rest }) => ({
    rope_scaling: { type: rope_type, ...rest },
    rope_theta: theta,
  }),
};

const cases = scalings.flatMap(([name, rope]) =>
  Object.keys(layouts).map((layout) => ({ name, rope, layout })),
);
/** Lengths within the original context, beyond it, and the longest possible. */
const sequences = [40, 150, context].map((length) => Array.from({ length }, (_, i) => (i * i + 7 * i) % 64));
const needs = needsPython("transformers");

describe.skipIf(!pythonHas("transformers"))(`rotary scalings are transformers 5.24's (${needs})`, () => {
  let root = "";
  const folderOf = (name: string, layout: string) => join(root, `${name}, ${layout}`);
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), "rope-"));
    for (const { name, rope, layout } of cases) {
      const folder = folderOf(name, layout);
      mkdirSync(folder);
      const write = (file: string, options: object) =>
        writeFileSync(join(folder, file), JSON.stringify({ ...llama, ...options }));
      write("config.json", layouts[layout]!(rope));
      write("unscaled.json", { rope_theta: theta });
    }
    const make = cases.map(({ name, layout }) => ({ folder: folderOf(name, layout), ids: sequences }));
    askPython("transformers-reference.test-data.py", { make });
    await useBackend({ backend: "wasm" });
  });
  afterAll(() => rmSync(root, { recursive: true }));

  it.each(cases)("equals $name in the layout of $layout", async ({ name, layout }) => {
    const folder = folderOf(name, layout);
    const model = await loadCausalLM(folder);
    const unscaled = await loadCausalLM(folder, { configFile: "unscaled.json" });
    const expected = await openSafetensors(join(folder, "logits.safetensors"));
    for (const ids of sequences) {
      const reference = (await expected.read(String(ids.length))) as Float32Array;
      expect(largestDifference(logitsOf(model, ids), reference), `${ids.length} tokens`).toBeLessThan(
        tolerance,
      );
      const effect = largestDifference(logitsOf(unscaled, ids), reference);
      // Dynamic scaling affects only sequences longer than the context, which are rejected.
      if (name === "dynamic") expect(effect).toBeLessThan(tolerance);
      else expect(effect).toBeGreaterThan(100 * tolerance);
    }
    expect(() => logitsOf(model, [...sequences.at(-1)!, 0])).toThrow(/of 1 to 256 tokens/);
    await expected.close();
    for (const each of [model, unscaled]) each.dispose();
  });
});

function logitsOf(model: { logits(ids: tf.Tensor2D): tf.Tensor }, ids: readonly number[]): Float32Array {
  return tf.tidy(() => model.logits(tf.tensor2d([...ids], [1, ids.length], "int32")).dataSync<"float32">());
}
