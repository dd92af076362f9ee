import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import type { HuggingFaceConfig } from "../families/config/config-reader.ts";
import { withLora } from "../lora/with-lora.ts";
import { reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { float32Fixtures, modelFixtures } from "../testing/fixtures.test-data.ts";
import { askPython, needsPython, pythonHas } from "../testing/python.test-data.ts";
import { tinyConfig } from "../testing/tiny-config.test-data.ts";
import { createCausalLM } from "./create-causal-lm.ts";
import { loadCausalLM } from "./load-causal-lm.ts";

/** Differences that `from_pretrained` finds between a saved folder and the original. */
interface Comparison {
  readonly count: number;
  readonly dtypes: readonly string[];
  readonly otherNames: readonly string[];
  /** Tensors whose bits differ from the original's, rounded by torch to the saved dtype. */
  readonly otherValues: readonly string[];
  /** Keys of the configuration that differ, without its dtype. */
  readonly otherOptions: readonly string[];
  /** Missing, unexpected and mismatched tensors, and errors. */
  readonly complaints: Readonly<Record<string, readonly string[]>>;
  /** Warnings for the saved folder that do not occur for the original. */
  readonly otherWarnings: readonly string[];
}

const dtypes = { F32: "torch.float32", BF16: "torch.bfloat16", F16: "torch.float16" } as const;
const cases = modelFixtures.flatMap(({ name }) =>
  (Object.keys(dtypes) as (keyof typeof dtypes)[]).map((dtype) => ({ name, dtype })),
);
/** This model is also saved with a merged adapter on `q_proj` of its second layer. */
const [mergedOf] = float32Fixtures("llama");

/** JSON as Python writes it, with decimal points that JavaScript drops. */
const yarn = `{ "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4, "beta_fast": 32.0,
  "beta_slow": 1.0, "attention_factor": 1.0 }`;
const pythonText = JSON.stringify({ ...tinyConfig, rope_scaling: "yarn" }).replace('"yarn"', yarn);

const needs = needsPython("transformers");

if (modelFixtures.length === 0) reportMissing("a model folder with expected.safetensors");
describe.skipIf(!pythonHas("transformers"))(`saved folders load in transformers 5.24 (${needs})`, () => {
  let root = "";
  const comparisons = new Map<string, Comparison>();
  const folderOf = (name: string, dtype: string) => join(root, `${name}-${dtype}`);

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), "transformers-"));
    await useBackend({ backend: "wasm" });
    for (const { name, folder } of modelFixtures) {
      const model = await loadCausalLM(folder);
      for (const one of cases.filter((one) => one.name === name))
        await model.save(folderOf(name, one.dtype), { dtype: one.dtype });
      if (name === mergedOf?.name) {
        const lora = withLora(model, { rank: 3, targetModules: ["q_proj"], layersToTransform: [1] });
        for (const variable of lora.trainables()) variable.assign(tf.ones(variable.shape));
        await lora.saveMerged(folderOf(name, "merged"));
        lora.dispose();
      }
      model.dispose();
    }
    const stretched = createCausalLM(JSON.parse(pythonText) as HuggingFaceConfig, { seed: "a" });
    await stretched.save(join(root, "yarn"));
    await stretched.save(folderOf("yarn", "F32"));
    stretched.dispose();
    writeFileSync(join(root, "yarn", "config.json"), pythonText);
    const yarnCase = { name: "yarn", dtype: "F32" };
    const merged = mergedOf === undefined ? [] : [{ name: mergedOf.name, dtype: "merged" }];
    const all = [...cases, ...merged, yarnCase];
    const folders = new Map(modelFixtures.map(({ name, folder }) => [name, resolve(folder)]));
    const compare = all.map(({ name, dtype }) => ({
      original: folders.get(name) ?? join(root, name),
      saved: folderOf(name, dtype),
    }));
    const found = JSON.parse(askPython("transformers-reference.test-data.py", { compare })) as Comparison[];
    for (const [i, { name, dtype }] of all.entries()) comparisons.set(`${name} ${dtype}`, found[i]!);
  });
  afterAll(() => rmSync(root, { recursive: true }));

  it.each(cases)("$name in $dtype, bit for bit, without missing or additional tensors", ({ name, dtype }) => {
    const { count, ...rest } = comparisons.get(`${name} ${dtype}`)!;
    expect(count).toBeGreaterThan(10);
    expect(rest).toEqual({
      dtypes: [dtypes[dtype]],
      otherNames: [],
      otherValues: [],
      otherOptions: [],
      complaints: {},
      otherWarnings: [],
    });
  });

  it("with YaRN, whose floats are read as floats without a warning", () => {
    const { count, ...rest } = comparisons.get("yarn F32")!;
    expect(count).toBe(21);
    expect(rest).toEqual({
      dtypes: ["torch.float32"],
      otherNames: [],
      otherValues: [],
      otherOptions: [],
      complaints: {},
      otherWarnings: [],
    });
  });

  if (mergedOf === undefined) reportMissing("a Llama in float32");
  it.runIf(mergedOf)("with a merged adapter, which changes only its module", () => {
    expect(comparisons.get(`${mergedOf!.name} merged`)).toMatchObject({
      dtypes: ["torch.float32"],
      otherNames: [],
      otherValues: ["model.layers.1.self_attn.q_proj.weight"],
      otherOptions: [],
      complaints: {},
    });
  });
});
