import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import type { EvaluableModel, OpenCheckpoint } from "@periodic-eval/core";
import { beforeAll, beforeEach, expect, it, vi } from "vitest";
import { temporaryFolder } from "../../testing/src/temporary-folder.test-data.ts";
import { useBackend } from "./backend/use-backend.ts";
import { loadCausalLM } from "./checkpoint/load-causal-lm.ts";
import { withLora } from "./lora/with-lora.ts";
import { openCheckpoint } from "./open-checkpoint.ts";
import { microWorld } from "./testing/onnx.test-data.ts";

let root: string;
beforeAll(async () => void (await useBackend({ backend: "wasm" })));
beforeEach(() => void (root = temporaryFolder()));

const tokenizerFiles = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];

/** Writes a full checkpoint whose weights are multiplied by `factor`, without a tokenizer. */
async function writeFull(name: string, factor: number): Promise<string> {
  const model = await loadCausalLM(microWorld);
  for (const { variable } of model.weights()) tf.tidy(() => variable.assign(tf.mul(variable, factor)));
  await model.save(join(root, name));
  model.dispose();
  await Promise.all(tokenizerFiles.map((file) => rm(join(root, name, file), { force: true })));
  return join(root, name);
}

/** Writes an adapter of the micro-world model with random weights of its own. */
async function writeAdapter(name: string, base = microWorld): Promise<string> {
  const lm = await loadCausalLM(base);
  const lora = withLora(lm, { seed: name, rank: 2 });
  for (const { variable } of lora.weights().slice(lm.weights().length))
    tf.tidy(() => variable.assign(tf.randomNormal(variable.shape, 0, 0.1, "float32", name.length)));
  await lora.save(join(root, name));
  lora.dispose();
  lm.dispose();
  return join(root, name);
}

async function scores(model: EvaluableModel): Promise<number> {
  const request = { context: { text: "The river" }, continuation: " is long." };
  const [one] = await model.logLikelihoods!([request], { signal: new AbortController().signal });
  return one!.sumNats;
}

async function scoresOf(base: string, path: string | null): Promise<number> {
  const opened = await openCheckpoint(base, path);
  const found = await scores(opened.model);
  await opened.dispose();
  return found;
}

it("is an OpenCheckpoint that opens the base, a full checkpoint and an adapter", async () => {
  const open: OpenCheckpoint = openCheckpoint;
  const before = tf.memory().numTensors;
  const [full, adapter] = [await writeFull("full", 0.9), await writeAdapter("adapter")];
  const base = await open(microWorld);
  const found = new Set([
    await scores(base.model),
    await scoresOf(microWorld, full),
    await scoresOf(microWorld, adapter),
  ]);
  expect(found.size).toBe(3);
  await base.dispose?.();
  expect(tf.memory().numTensors).toBe(before);
});

it("loads the base once for adapters that are opened while it is open", async () => {
  const adapters = [await writeAdapter("one"), await writeAdapter("other")];
  let loads = 0;
  const progress = {
    onLoad: ({ doneBytes }: { readonly doneBytes: number }) => void (doneBytes === 0 && loads++),
  };
  const base = await openCheckpoint(microWorld, null, progress);
  const before = tf.memory().numTensors;
  const [one, other] = [
    await openCheckpoint(microWorld, adapters[0], progress),
    await openCheckpoint(microWorld, adapters[1], progress),
  ];
  expect(loads).toBe(1);
  const shared = [await scores(one.model), await scores(other.model), await scores(base.model)];
  await base.dispose();
  // The base stays while an adapter uses it.
  expect(await scores(one.model)).toBe(shared[0]);
  await one.dispose();
  await other.dispose();
  expect(tf.memory().numTensors).toBeLessThan(before);
  expect(shared).toEqual([
    await scoresOf(microWorld, adapters[0]!),
    await scoresOf(microWorld, adapters[1]!),
    await scoresOf(microWorld, null),
  ]);
});

it("loads a folder again that was saved again, while its earlier weights are open", async () => {
  const folder = await writeFull("saved", 1);
  const first = await openCheckpoint(microWorld, folder);
  const before = await scores(first.model);
  await writeFull("saved", 0.9);
  const second = await openCheckpoint(microWorld, folder);
  expect(await scores(second.model)).not.toBe(before);
  expect(await scores(first.model)).toBe(before);
  expect(await second.fingerprint()).not.toBe(await first.fingerprint());
  await first.dispose();
  await second.dispose();
});

it("uses the tokenizer of the checkpoint, otherwise that of the base, unless another is named", async () => {
  const [full, adapter] = [await writeFull("full", 1), await writeAdapter("adapter")];
  const fingerprint = async (path: string | null, tokenizer: string | null = null) => {
    const opened = await openCheckpoint(microWorld, path, { tokenizer });
    await opened.dispose();
    return opened.model.tokenizer!.fingerprint;
  };
  const ofBase = await fingerprint(null);
  expect([await fingerprint(full), await fingerprint(adapter)]).toEqual([ofBase, ofBase]);
  for (const folder of [full, adapter]) {
    for (const file of tokenizerFiles) await copyFile(join(microWorld, file), join(folder, file));
    await writeFile(join(folder, "chat_template.jinja"), "{{ messages[0].content }}");
    expect(await fingerprint(folder)).not.toBe(ofBase);
    expect(await fingerprint(folder, microWorld)).toBe(ofBase);
  }
});

it("warns of an adapter of a base with another name, refuses other weights by their hash, and frees the base", async () => {
  const adapter = await writeAdapter("adapter");
  const file = join(adapter, "adapter_config.json");
  const config = JSON.parse(await readFile(file, "utf8")) as object;
  await writeFile(file, JSON.stringify({ ...config, base_model_name_or_path: "owner/other" }));
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  await (await openCheckpoint(microWorld, adapter)).dispose();
  expect(warn.mock.calls).toEqual([
    [
      expect.stringContaining(
        `was trained on "owner/other" and is measured on ${microWorld}: check that it is`,
      ),
    ],
  ]);
  warn.mockRestore();
  await writeFile(file, JSON.stringify({ ...config, base_model_name_or_path: microWorld }));
  await writeFile(
    join(adapter, "trainer_state.json"),
    JSON.stringify({ exact: { frozenWeights: "pe128:0" } }),
  );
  const before = tf.memory().numTensors;
  await expect(openCheckpoint(microWorld, adapter)).rejects.toMatchObject({ code: "model" });
  expect(tf.memory().numTensors).toBe(before);
});

it("refuses sharded weights by the command that merges them", async () => {
  const sharded = join(root, "sharded");
  await mkdir(join(sharded, "pytorch_model_fsdp_0"), { recursive: true });
  const refusal = {
    code: "model",
    where: sharded,
    got: "pytorch_model_fsdp_0, weights sharded by FSDP",
    fix: expect.stringContaining(`accelerate merge-weights ${join(sharded, "pytorch_model_fsdp_0")} OUTPUT`),
  };
  await expect(openCheckpoint(microWorld, sharded)).rejects.toMatchObject(refusal);
  await expect(openCheckpoint(sharded)).rejects.toMatchObject(refusal);
  await expect(loadCausalLM(sharded)).rejects.toMatchObject(refusal);
});

it.each([
  ["model/__0_0.distcp", "accelerate merge-weights FOLDER/model OUTPUT"],
  ["distcp/__0_0.distcp", "accelerate merge-weights FOLDER/distcp OUTPUT"],
  ["pytorch_model_0/__0_0.distcp", "accelerate merge-weights FOLDER/pytorch_model_0 OUTPUT"],
  ["actor/model_world_size_2_rank_0.pt", "--local_dir FOLDER/actor --target_dir"],
  ["pytorch_model_fsdp.bin", "cp FOLDER/pytorch_model_fsdp.bin FOLDER/pytorch_model.bin"],
])("refuses %s with or without config.json, by what makes a checkpoint of it", async (file, command) => {
  const folder = join(root, "parts");
  await mkdir(dirname(join(folder, file)), { recursive: true });
  await writeFile(join(folder, file), "");
  const fix = command.replace("FOLDER", folder);
  const refusal = { code: "model", got: expect.stringContaining(file), fix: expect.stringContaining(fix) };
  await expect(loadCausalLM(folder)).rejects.toMatchObject(refusal);
  await copyFile(join(microWorld, "config.json"), join(folder, "config.json"));
  await expect(loadCausalLM(folder)).rejects.toMatchObject(refusal);
  await expect(openCheckpoint(microWorld, folder)).rejects.toMatchObject(refusal);
});

it("refuses a folder that is no checkpoint, and frees the base on an abort", async () => {
  await mkdir(join(root, "empty"));
  await expect(openCheckpoint(microWorld, join(root, "empty"))).rejects.toMatchObject({
    code: "model",
    where: join(root, "empty"),
  });
  const before = tf.memory().numTensors;
  await expect(openCheckpoint(microWorld, null, { signal: AbortSignal.abort() })).rejects.toThrow();
  expect(tf.memory().numTensors).toBe(before);
});
