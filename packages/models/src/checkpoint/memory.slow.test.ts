import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { writeSafetensors } from "@periodic-eval/safetensors";
import { describe, expect, it } from "vitest";
import { listWeights, weightSpecs } from "../decoder/weights.ts";
import { llama } from "../families/llama.ts";
import { hasNative, nativeBackend, testedBackends } from "../testing/backends.test-data.ts";
import { data } from "../../../testing/src/fixtures.test-data.ts";
import { smollm2 } from "../testing/fixtures.test-data.ts";
import { ConfigReader } from "../families/config/config-reader.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

/** Peaks of memory since the start of the process, in bytes. */
interface Peaks {
  readonly before: number;
  readonly loading: number;
  readonly scoring: number;
  /** The size of all weights as float32. */
  readonly weights: number;
}

const child = fileURLToPath(new URL("memory-child.test-data.ts", import.meta.url));

async function peaksOf(...args: string[]): Promise<Peaks> {
  // V8 keeps more garbage on machines with more memory by default.
  const heap = "--max-old-space-size=256";
  const node = [heap, "--import", "tsx", "-C", "@periodic-eval/source", child, ...args];
  const { stdout } = await promisify(execFile)(process.execPath, node);
  return JSON.parse(stdout) as Peaks;
}

/**
 * A Llama with most of its weights in its layers. On tfjs-node the fixed cost of loading is larger than on wasm, so the model that
 * proves the ratio is larger too: 133 M weights (267 MB in bfloat16, 534 MB as float32) instead of 69 M.
 */
function configOf(backend: string) {
  const isLarge = backend === nativeBackend;
  return {
    model_type: "llama",
    vocab_size: isLarge ? 32_000 : 16_000,
    hidden_size: isLarge ? 1024 : 768,
    intermediate_size: isLarge ? 4096 : 3072,
    num_hidden_layers: 6,
    num_attention_heads: 16,
    max_position_embeddings: 64,
    tie_word_embeddings: true,
  };
}

/** Writes three shards, each weight a constant. */
async function writeShards(folder: string, config: ReturnType<typeof configOf>): Promise<void> {
  const specs = listWeights(weightSpecs(llama.describe(new ConfigReader(config, "config")), llama.names));
  const index: Record<string, string> = {};
  for (const shard of [0, 1, 2]) {
    const file = `model-${shard}.safetensors`;
    const own = specs.filter((_, i) => i % 3 === shard);
    const tensors = own.map(({ name, shape }) => ({
      name,
      shape,
      values: () => new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(0.01),
    }));
    await writeSafetensors(join(folder, file), tensors, { dtype: "BF16" });
    for (const { name } of own) index[name] = file;
  }
  await writeFile(join(folder, "model.safetensors.index.json"), JSON.stringify({ weight_map: index }));
  await writeFile(join(folder, "config.json"), JSON.stringify(config));
}

describe("the peak of memory", () => {
  it.each(testedBackends.filter((name) => name !== "cpu"))(
    "rises by less than 1.3 times the float32 weights while shards of bfloat16 load on %s",
    async (backend) => {
      const folder = temporaryFolder();
      const { before, loading, weights } = await writeShards(folder, configOf(backend))
        .then(() => peaksOf(backend, folder))
        .finally(() => rm(folder, { recursive: true }));
      // V · H + 6 · (4 · H² + 3 · 4H · H + 2 · H) + H, with V = 32,000 and H = 1,024, or V = 16,000 and H = 768
      expect(weights).toBe(4 * (backend === nativeBackend ? 133_444_608 : 68_921_088));
      // A part of the peak before loading was free again.
      expect(loading - before).toBeGreaterThan(weights / 2);
      expect(loading - before).toBeLessThan(1.3 * weights);
    },
  );

  const questions = join(data, "arc_challenge", "test.jsonl");
  it("stays below 2.5 GB while SmolLM2 loads and scores on tfjs-node", async (test) => {
    const isAvailable = existsSync(smollm2) && existsSync(questions) && hasNative;
    test.skip(!isAvailable, "needs SmolLM2, ARC-Challenge and tfjs-node");
    const { before, loading, weights, scoring } = await peaksOf(nativeBackend, smollm2, questions);
    expect(loading - before).toBeLessThan(1.3 * weights);
    expect(scoring).toBeLessThan(2.5e9);
  });
});
