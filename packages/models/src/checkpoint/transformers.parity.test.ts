import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import type { HuggingFaceConfig } from "../families/config.ts";
import { withLora } from "../lora/with-lora.ts";
import { reportMissing } from "../../../core/src/testing/fixtures.test-data.ts";
import { float32Fixtures, modelFixtures } from "../testing/fixtures.test-data.ts";
import { askPython, pythonHas } from "../testing/python.ts";
import { tinyConfig } from "../testing/tiny-config.ts";
import { createCausalLM } from "./create.ts";
import { loadCausalLM } from "./load.ts";

/** What `from_pretrained` makes of a folder that we saved, beside the one that it was loaded from. */
interface Comparison {
  readonly count: number;
  readonly dtypes: readonly string[];
  readonly otherNames: readonly string[];
  /** Where the bits are others than the original's in the dtype of the saved one, by torch's rounding. */
  readonly otherValues: readonly string[];
  /** Of the configuration, but for its dtype. */
  readonly otherOptions: readonly string[];
  /** Missing, unexpected and mismatched keys, and errors. */
  readonly complaints: Readonly<Record<string, readonly string[]>>;
  /** What is logged of the saved one and not of the original. */
  readonly otherWarnings: readonly string[];
}

const dtypes = { F32: "torch.float32", BF16: "torch.bfloat16", F16: "torch.float16" } as const;
const cases = modelFixtures.flatMap(({ name }) =>
  (Object.keys(dtypes) as (keyof typeof dtypes)[]).map((dtype) => ({ name, dtype })),
);
/** This model is also saved with a merged adapter on `q_proj` of its second layer. */
const [mergedOf] = float32Fixtures("llama");

/** As Python writes it; JavaScript's numbers lose the point. */
const yarn = `{ "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4, "beta_fast": 32.0,
  "beta_slow": 1.0, "attention_factor": 1.0 }`;
const pythonText = JSON.stringify({ ...tinyConfig, rope_scaling: "yarn" }).replace('"yarn"', yarn);

const needs = "needs, in PERIODIC_EVAL_PEERS_PYTHON, a Python with transformers";

if (modelFixtures.length === 0) reportMissing("a model folder with expected.safetensors");
describe.skipIf(!pythonHas("transformers"))(`saved folders load in transformers 5.23 (${needs})`, () => {
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
    const said = JSON.parse(askPython("transformers-reference.py", { compare })) as Comparison[];
    for (const [i, { name, dtype }] of all.entries()) comparisons.set(`${name} ${dtype}`, said[i]!);
  });
  afterAll(() => rmSync(root, { recursive: true }));

  it.each(cases)("$name in $dtype: each tensor bit for bit, none missing, none more", ({ name, dtype }) => {
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

  it("with YaRN: options that are floats are read as floats, without a warning", () => {
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

  if (mergedOf === undefined) reportMissing("a float32 Llama");
  it.runIf(mergedOf)("with a merged adapter: only its module differs", () => {
    expect(comparisons.get(`${mergedOf!.name} merged`)).toMatchObject({
      dtypes: ["torch.float32"],
      otherNames: [],
      otherValues: ["model.layers.1.self_attn.q_proj.weight"],
      otherOptions: [],
      complaints: {},
    });
  });
});
