import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { tinyConfig, tinyConfigs } from "../testing/tiny-config.test-data.ts";
import { createCausalLM } from "./create-causal-lm.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const root = temporaryFolder(afterAll);
beforeAll(async () => {
  await useBackend({ backend: "cpu" });
});

describe("a saved configuration", () => {
  it("writes floats with a decimal point if transformers requires it", async () => {
    const config = { ...tinyConfigs.gemma2, final_logit_softcapping: 30, attn_logit_softcapping: 50 };
    const model = createCausalLM(config, { seed: "a" });
    const points = join(root, "points");
    await model.save(points);
    const text = await readFile(join(points, "config.json"), "utf8");
    expect(text).toContain('"final_logit_softcapping": 30.0,\n  "attn_logit_softcapping": 50.0\n');
    expect(JSON.parse(text)).toEqual(config);
    model.dispose();
  });

  it.each([
    { rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4 },
    { rope_type: "yarn", factor: 4, beta_fast: 32, beta_slow: 1, attention_factor: 1 },
    { rope_type: "yarn", factor: 4, mscale: 1, mscale_all_dim: 2 },
  ])("writes rotary floats of $rope_type with a decimal point", async (rope) => {
    const rope_scaling = { ...rope, original_max_position_embeddings: 4 };
    const model = createCausalLM({ ...tinyConfig, rope_scaling }, { seed: "a" });
    const points = join(root, `points of ${Object.keys(rope).join()}`);
    await model.save(points);
    const text = await readFile(join(points, "config.json"), "utf8");
    const { rope_type: _, ...floats } = { ...rope, rope_theta: 100 };
    for (const [key, value] of Object.entries(floats)) expect(text).toContain(`"${key}": ${value}.0`);
    expect(text).toContain('"original_max_position_embeddings": 4\n');
    expect(JSON.parse(text)).toEqual({ ...tinyConfig, rope_scaling });
    model.dispose();
  });
});
