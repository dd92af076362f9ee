import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { openSafetensors, type SafetensorsFile } from "@periodic-eval/safetensors";
import { describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { openTensors } from "../checkpoint/tensors.ts";
import { testedBackends } from "../testing/backends.test-data.ts";
import { largestDifference } from "../testing/largest-difference.test-data.ts";
import { ConfigReader, type HuggingFaceConfig } from "./config/config-reader.ts";
import { familyOf } from "./registry.ts";
import { reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { float32Fixtures, modelFixtures } from "../testing/fixtures.test-data.ts";

/** The largest difference over all stored positions. The smallest effect of a wrong option in the fixtures is 1.1e-3. */
const tolerance = 2e-4;

/** One model of each way to compute, because webgpu is slow without a GPU; others compute in one of these ways. */
const onWebGPU = [
  ...["llama", "qwen3", "gemma2"].map((family) => float32Fixtures(family)[0]),
  float32Fixtures("gpt_neox", { use_parallel_residual: true })[0],
  float32Fixtures("phi3").find(({ config }) => JSON.stringify(config).includes("long_factor")),
];

/** The error that prevents tests on webgpu; null if webgpu works. */
const withoutWebGPU: string | null = await useBackend({ backend: "webgpu" }).then(
  () => null,
  ({ message }: Error) => message,
);

/** The layouts of transformers 5 and 4. */
const layouts = ["config.json", "config.v4.json"];

if (modelFixtures.length === 0) reportMissing("a model folder with expected.safetensors");
describe.each(modelFixtures)("$name equals transformers 5.23", ({ name, folder }) => {
  const present = layouts.filter((file) => existsSync(join(folder, file)));

  it("has a supported family and the same description in both layouts", () => {
    const descriptions = present.map((file) => {
      const config = configOf(folder, file);
      return familyOf(config, file).describe(new ConfigReader(config, file));
    });
    for (const description of descriptions) expect(description).toEqual(descriptions[0]);
  });

  it.each(testedBackends)("in logits, hidden states and its greedy continuation on %s", checkOn);

  if (onWebGPU.some((one) => one?.name === name)) {
    it("in logits, hidden states and its greedy continuation on webgpu", async (test) => {
      test.skip(withoutWebGPU !== null, withoutWebGPU ?? "");
      await checkOn("webgpu");
    });
  }

  async function checkOn(backend: string): Promise<void> {
    await useBackend({ backend });
    // Equal descriptions compute equal results, so the second layout is loaded on one backend only.
    for (const configFile of backend === testedBackends[0] ? present : present.slice(0, 1)) {
      const model = await loadCausalLM(folder, { configFile });
      await withExpected(folder, async (expected) => {
        await checkLogits(model, expected);
        if (configFile !== present[0]) return;
        if (expected.tensors.has("seq1.hidden.0")) await checkHiddenStates(model, expected);
        const { greedy } = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8"));
        const ids = (await expected.read("seq1.ids")) as Int32Array;
        expect(await mostLikelyNext(model, [...ids], greedy.new_ids)).toEqual(greedy.new_ids);
      }).finally(() => model.dispose());
    }
  }

  it("has the same bits under the same names after saving", async () => {
    await useBackend({ backend: testedBackends[0]! });
    const target = mkdtempSync(join(tmpdir(), "parity-"));
    const model = await loadCausalLM(folder);
    const [source, config] = [await openTensors(folder), configOf(folder, "config.json")];
    const { dtype } = source.tensors.get(model.weights()[0]!.name)!;
    await model.save(target, { dtype: dtype as "F32" | "F16" | "BF16" });
    const saved = await openTensors(target);
    const { buffers } = familyOf(config, folder);
    const isBuffer = (name: string) => name.endsWith(".inv_freq") || buffers?.test(name);
    const kept = [...source.tensors.keys()].filter((name) => !isBuffer(name));
    expect([...saved.tensors.keys()].sort()).toEqual(kept.sort());
    for (const name of kept) {
      expect(saved.tensors.get(name)!.dtype).toBe(dtype);
      expect(saved.tensors.get(name)!.shape).toEqual(source.tensors.get(name)!.shape);
      const [before, after] = [await source.read(name), await saved.read(name)];
      expect(Buffer.compare(bytesOf(before), bytesOf(after)), name).toBe(0);
    }
    await source.close();
    await saved.close();
    model.dispose();
    rmSync(target, { recursive: true });
  });
});

async function checkLogits(model: CheckpointLM, expected: SafetensorsFile): Promise<void> {
  for (let sequence = 0; expected.tensors.has(`seq${sequence}.ids`); sequence++) {
    const ids = (await expected.read(`seq${sequence}.ids`)) as Int32Array;
    const positions = (await expected.read(`seq${sequence}.positions`)) as Int32Array;
    const reference = await expected.read(`seq${sequence}.logits`);
    for (const logits of await logitsOf(model, ids, positions))
      expect(largestDifference(logits, reference), `sequence ${sequence}`).toBeLessThan(tolerance);
  }
}

async function checkHiddenStates(model: CheckpointLM, expected: SafetensorsFile): Promise<void> {
  const ids = (await expected.read("seq1.ids")) as Int32Array;
  for (const [index, state] of (await hiddenStates(model, ids)).entries()) {
    const reference = await expected.read(`seq1.hidden.${index}`);
    expect(largestDifference(state, reference), `hidden state ${index}`).toBeLessThan(tolerance);
  }
}

async function withExpected(folder: string, check: (file: SafetensorsFile) => Promise<void>): Promise<void> {
  const expected = await openSafetensors(join(folder, "expected.safetensors"));
  await check(expected).finally(() => expected.close());
}

/** Checks logits at some positions of a sequence: with the head on these positions and, for a short one, on all. */
function logitsOf(model: CheckpointLM, ids: Int32Array, positions: Int32Array): Promise<Float32Array[]> {
  return valuesOf(() => {
    const input = tf.tensor2d(ids, [1, ids.length], "int32");
    const found = [model.logitsAt(input, tf.tensor1d(positions, "int32"))];
    if (ids.length < 10) {
      const all = tf.reshape(model.logits(input), [ids.length, model.vocabSize]);
      found.push(tf.gatherND(all, tf.tensor2d(positions, [positions.length, 1], "int32")) as tf.Tensor2D);
    }
    return found;
  });
}

function hiddenStates(model: CheckpointLM, ids: Int32Array): Promise<Float32Array[]> {
  return valuesOf(() => model.hiddenStates(tf.tensor2d(ids, [1, ids.length], "int32")));
}

/**
 * Returns the most likely token after each prefix of the continuation, from one pass over it. They equal the continuation
 * exactly if greedy decoding generates it.
 */
async function mostLikelyNext(
  model: CheckpointLM,
  ids: readonly number[],
  continuation: readonly number[],
): Promise<number[]> {
  const all = [...ids, ...continuation.slice(0, -1)];
  const rows = continuation.map((_, i) => ids.length - 1 + i);
  const [logits] = await valuesOf(() => {
    const input = tf.tensor2d(all, [1, all.length], "int32");
    return [model.logitsAt(input, tf.tensor1d(rows, "int32"))];
  });
  return rows.map((_, i) => {
    const row = logits!.subarray(i * model.vocabSize, (i + 1) * model.vocabSize);
    return row.indexOf(Math.max(...row));
  });
}

/** Reads asynchronously, because a GPU's results cannot be read synchronously. */
async function valuesOf(compute: () => tf.Tensor[]): Promise<Float32Array[]> {
  const tensors = tf.tidy(compute);
  const values = await Promise.all(tensors.map((tensor) => tensor.data<"float32">()));
  tf.dispose(tensors);
  return values;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array) =>
  Buffer.from(buffer, byteOffset, byteLength);

function configOf(folder: string, file: string): HuggingFaceConfig {
  return JSON.parse(readFileSync(join(folder, file), "utf8")) as HuggingFaceConfig;
}
