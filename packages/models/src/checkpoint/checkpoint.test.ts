import { link, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import {
  openSafetensors,
  readSafetensorsHeader,
  writeSafetensors,
  type TensorToWrite,
} from "@periodic-eval/safetensors";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { tinyConfig, tinyConfigs } from "../testing/tiny-config.test-data.ts";
import { createCausalLM } from "./create-causal-lm.ts";
import { loadCausalLM } from "./load-causal-lm.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

/** The weights of `tinyConfig`: 2 · 32 · 8 + 2 · (8² · 2 + 4 · 8 · 2 + 3 · 8 · 12 + 2 · 8) + 8. */
const weightCount = 2 * 256 + 2 * (128 + 64 + 288 + 16) + 8;

const root = temporaryFolder(afterAll);
let good: string;
let count = 0;
beforeAll(async () => {
  await useBackend({ backend: "cpu" });
  good = join(root, "good");
  const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
  await model.save(good);
  model.dispose();
});

describe("a saved model", () => {
  it("has Hugging Face's names, shapes and files", async () => {
    expect((await readdir(good)).sort()).toEqual(["config.json", "model.safetensors"]);
    expect(JSON.parse(await readFile(join(good, "config.json"), "utf8"))).toEqual(tinyConfig);
    const { tensors, metadata } = await readSafetensorsHeader(join(good, "model.safetensors"));
    expect(metadata).toEqual({ format: "pt" });
    // [out, in]: 2 key-value heads of 2 dimensions from 8; 8 from 12.
    expect(tensors.get("model.layers.1.self_attn.k_proj.weight")!.shape).toEqual([4, 8]);
    expect(tensors.get("model.layers.0.mlp.down_proj.weight")!.shape).toEqual([8, 12]);
    expect(tensors.size).toBe(2 * 9 + 3);
  });

  it("loads and saves again to the same bytes", async () => {
    const model = await loadCausalLM(good);
    const again = join(root, "again");
    await model.save(again);
    for (const file of ["config.json", "model.safetensors"]) {
      expect(await readFile(join(again, file))).toEqual(await readFile(join(good, file)));
    }
    model.dispose();
  });

  it("reports its loading progress, the largest weights first", async () => {
    const reported: number[] = [];
    const model = await loadCausalLM(good, {
      onLoad({ model, doneBytes, totalBytes }) {
        expect([model, totalBytes]).toEqual([good, 4 * weightCount]);
        reported.push(doneBytes);
      },
    });
    // Embedding and head: 32 · 8 float32 each.
    expect(reported.slice(0, 3)).toEqual([0, 1024, 2048]);
    expect(reported.length).toBe(1 + 21);
    expect(reported.at(-1)).toBe(4 * weightCount);
    model.dispose();
  });

  it("records bfloat16 in its configuration and includes the tokenizer", async () => {
    await writeFile(join(good, "tokenizer.json"), "{}");
    await writeFile(join(good, "chat_template.jinja"), "x");
    await mkdir(join(good, "additional_chat_templates"));
    await writeFile(join(good, "additional_chat_templates", "tool_use.jinja"), "y");
    await writeFile(join(good, "optimizer.bin"), "not this one");
    const model = await loadCausalLM(good);
    const short = join(root, "short");
    await model.save(short, { dtype: "BF16" });
    expect((await readdir(short, { recursive: true })).sort()).toEqual([
      "additional_chat_templates",
      join("additional_chat_templates", "tool_use.jinja"),
      "chat_template.jinja",
      "config.json",
      "model.safetensors",
      "tokenizer.json",
    ]);
    expect(JSON.parse(await readFile(join(short, "config.json"), "utf8")).torch_dtype).toBe("bfloat16");
    const [file, original] = [
      await openSafetensors(join(short, "model.safetensors")),
      await openSafetensors(join(good, "model.safetensors")),
    ];
    expect(file.tensors.get("lm_head.weight")!.dtype).toBe("BF16");
    const values = await original.read("lm_head.weight");
    // 8 bits of precision: a relative error of at most 2^-8.
    [...(await file.read("lm_head.weight"))].forEach((value, i) => {
      expect(Math.abs(Number(value) - Number(values[i]))).toBeLessThanOrEqual(
        Math.abs(Number(values[i])) * 2 ** -8,
      );
    });
    await file.close();
    await original.close();
    model.dispose();
  });
});

it("replaces the tokenizer of an older model atomically", async () => {
  const [from, to] = [join(root, "with tokenizer"), join(root, "older")];
  const created = createCausalLM(tinyConfig, { seed: "a" });
  for (const folder of [from, to]) await created.save(folder);
  await writeFile(join(from, "tokenizer.json"), "new");
  await writeFile(join(to, "tokenizer.json"), "old");
  // A hard link shows whether the old file's bytes are overwritten.
  await link(join(to, "tokenizer.json"), join(root, "old bytes"));
  const model = await loadCausalLM(from);
  await model.save(to);
  expect(await readFile(join(to, "tokenizer.json"), "utf8")).toBe("new");
  expect(await readFile(join(root, "old bytes"), "utf8")).toBe("old");
  for (const each of [created, model]) each.dispose();
});

it("rejects wrong options with the path of the option", async () => {
  const created = createCausalLM(tinyConfig, { seed: "a" });
  const badRange = { ...tinyConfig, initializer_range: "wide" };
  const wrong: [() => unknown, path: string, got: string][] = [
    [() => loadCausalLM(good, { dropOut: 0.1 } as object), "dropOut", 'the unknown option "dropOut"'],
    [() => loadCausalLM(good, { onLoad: 7 as never }), "onLoad", "7"],
    [() => createCausalLM(tinyConfig, { seed: "a", std: 1 } as never), "std", 'the unknown option "std"'],
    [() => createCausalLM(tinyConfig, {} as never), "seed", "undefined"],
    [() => createCausalLM(tinyConfig, { seed: "a", initStd: Number.NaN }), "initStd", "NaN"],
    [() => createCausalLM(badRange, { seed: "a" }), "initializer_range", '"wide"'],
    [() => created.save(good, { dtpye: "BF16" } as object), "dtpye", 'the unknown option "dtpye"'],
    [() => created.save(good, { dtype: "bf16" as "BF16" }), "dtype", '"bf16"'],
  ];
  for (const [call, path, got] of wrong)
    await expect((async () => call())()).rejects.toMatchObject({ code: "config", path: [path], got });
  await expect(created.save(good, { dtpye: "BF16" } as object)).rejects.toThrow('Did you mean "dtype"?');
  created.dispose();
});

it("replaces the shards of a folder when it saves there", async () => {
  const folder = join(root, "sharded");
  await mkdir(folder);
  const [old, fresh] = ["old", "fresh"].map((seed) => createCausalLM(tinyConfig, { seed, initStd: 0.3 }));
  await old!.save(folder);
  const file = await openSafetensors(join(folder, "model.safetensors"));
  const names = [...file.tensors.keys()];
  const shards = [names.slice(0, 5), names.slice(5)];
  const weight_map: Record<string, string> = {};
  for (const [i, shard] of shards.entries()) {
    const tensors: TensorToWrite[] = [];
    for (const name of shard) {
      const values = (await file.read(name)) as Float32Array;
      tensors.push({ name, shape: file.tensors.get(name)!.shape, values: () => values });
      weight_map[name] = `model-${i}.safetensors`;
    }
    await writeSafetensors(join(folder, `model-${i}.safetensors`), tensors);
  }
  await file.close();
  await rm(join(folder, "model.safetensors"));
  await writeFile(join(folder, "model.safetensors.index.json"), JSON.stringify({ weight_map }));
  await writeFile(join(folder, "adapter.safetensors"), "of someone else");
  await fresh!.save(folder);
  expect((await readdir(folder)).sort()).toEqual(["adapter.safetensors", "config.json", "model.safetensors"]);
  const loaded = await loadCausalLM(folder);
  const head = (model: typeof loaded) => model.weights()[0]!.variable.dataSync();
  expect(head(loaded)).toEqual(head(fresh!));
  for (const model of [old!, fresh!, loaded]) model.dispose();
});

it("removes a damaged index when it saves, but no files outside the folder that it names", async () => {
  const folder = join(root, "damaged index");
  await mkdir(folder);
  const outside = join(root, "outside.safetensors");
  await writeFile(outside, "");
  const model = createCausalLM(tinyConfig, { seed: "a" });
  for (const index of ["{", '{"weight_map": {"x": "../outside.safetensors"}}']) {
    await writeFile(join(folder, "model.safetensors.index.json"), index);
    await model.save(folder);
    expect((await readdir(folder)).sort()).toEqual(["config.json", "model.safetensors"]);
  }
  expect(await readFile(outside, "utf8")).toBe("");
  model.dispose();
});

it("creates a padding embedding of 0, like nn.Embedding with padding_idx in torch", () => {
  const model = createCausalLM({ ...tinyConfig, pad_token_id: 3 }, { seed: "a" });
  const without = createCausalLM(tinyConfig, { seed: "a" });
  const [rows, others] = [model, without].map((lm) => {
    const { variable } = lm.weights().find(({ name }) => name === "model.embed_tokens.weight")!;
    return variable.arraySync() as number[][];
  });
  expect(rows![3]).toEqual(Array.from({ length: 8 }, () => 0));
  expect(rows!.toSpliced(3, 1)).toEqual(others!.toSpliced(3, 1));
  expect(others![3]).not.toContain(0);
  for (const each of [model, without]) each.dispose();
});

describe("a head", () => {
  const tied = { ...tinyConfig, tie_word_embeddings: true };

  it("is tied if the file repeats the embedding, and separate if its values differ", async () => {
    const created = createCausalLM(tied, { seed: "a", initStd: 0.3 });
    const folder = join(root, "repeated head");
    await created.save(folder);
    const tensors = await tensorsOf(folder);
    const embedding = (await tensors
      .find(({ name }) => name === "model.embed_tokens.weight")!
      .values()) as Float32Array;
    for (const [change, count] of [
      [0, 20],
      [1, 21],
    ] as const) {
      const head = { name: "lm_head.weight", shape: [32, 8], values: () => embedding.map((x) => x + change) };
      await writeSafetensors(join(folder, "model.safetensors"), [...tensors, head]);
      const loaded = await loadCausalLM(folder);
      expect(loaded.weights().length).toBe(count);
      loaded.dispose();
    }
    created.dispose();
  });

  it("may be missing from a checkpoint, together with the prefix of all names", async () => {
    const folder = join(root, "without head");
    const created = createCausalLM(tied, { seed: "a", initStd: 0.3 });
    await created.save(folder);
    const tensors = await tensorsOf(folder);
    const bare = tensors.map((tensor) => ({ ...tensor, name: tensor.name.replace(/^model\./, "") }));
    await writeSafetensors(join(folder, "model.safetensors"), bare);
    const loaded = await loadCausalLM(folder);
    await loaded.save(join(root, "without head again"));
    const { tensors: saved } = await readSafetensorsHeader(
      join(root, "without head again", "model.safetensors"),
    );
    expect([...saved.keys()]).toContain("embed_tokens.weight");
    const [a, b] = [created, loaded].map((model) =>
      model.weights().map(({ variable }) => [...variable.dataSync()]),
    );
    expect(a).toEqual(b);
    for (const model of [created, loaded]) model.dispose();
  });

  it("may have the name of other families in a GPT-NeoX", async () => {
    const folder = join(root, "renamed head");
    const created = createCausalLM(tinyConfigs.gpt_neox, { seed: "a", initStd: 0.3 });
    await created.save(folder);
    const tensors = await tensorsOf(folder);
    const renamed = tensors.map((tensor) => ({
      ...tensor,
      name: tensor.name.replace("embed_out", "lm_head"),
    }));
    await writeSafetensors(join(folder, "model.safetensors"), renamed);
    const loaded = await loadCausalLM(folder);
    expect(loaded.weights().at(-1)!.name).toBe("lm_head.weight");
    for (const model of [created, loaded]) model.dispose();
  });
});

describe("loading a damaged folder", () => {
  let folder: string;
  let before: number;
  beforeEach(async () => {
    folder = join(root, `bad${count++}`);
    await mkdir(folder);
    before = tf.memory().numTensors;
  });

  async function expectError(message: RegExp): Promise<void> {
    const error = await loadCausalLM(folder).catch((error: unknown) => error);
    expect(PeriodicEvalError.is(error, "model")).toBe(true);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).toContain(folder);
    expect(tf.memory().numTensors).toBe(before);
  }

  async function write(change: (tensors: TensorToWrite[]) => TensorToWrite[], config: object = tinyConfig) {
    await writeFile(join(folder, "config.json"), JSON.stringify(config));
    await writeSafetensors(join(folder, "model.safetensors"), change(await goodTensors()));
  }

  it("throws for a missing or damaged configuration, and for missing weights", async () => {
    await expectError(/config\.json: got no such file/);
    await writeFile(join(folder, "config.json"), '{"model_type": ');
    await expectError(/invalid JSON .*, expected JSON/);
    await writeFile(join(folder, "config.json"), "[]");
    await expectError(/got an array/);
    await writeFile(join(folder, "config.json"), JSON.stringify(tinyConfig));
    await expectError(/model\.safetensors: got ENOENT/);
  });

  it("throws for a missing, an unknown, a wrongly shaped or an integer tensor", async () => {
    const name = "model.layers.1.mlp.up_proj.weight";
    await write((tensors) => tensors.filter((tensor) => tensor.name !== name));
    await expectError(
      /tensor model\.layers\.1\.mlp\.up_proj\.weight: got no such tensor, expected \[12, 8\]/,
    );
    await write((tensors) => [
      ...tensors,
      { name: "model.layers.2.x", shape: [0], values: () => new Float32Array(0) },
    ]);
    await expectError(/tensor model\.layers\.2\.x: got a tensor that this model does not have/);
    await write((tensors) =>
      tensors.map((tensor) => (tensor.name === name ? { ...tensor, shape: [8, 12] } : tensor)),
    );
    await expectError(/up_proj\.weight: got \[8, 12\], expected \[12, 8\]/);
    const whole = { name, shape: [12, 8], dtype: "I32" as const, values: () => new Int32Array(96) };
    await write((tensors) => tensors.map((tensor) => (tensor.name === name ? whole : tensor)));
    await expectError(/got I32, expected F32, BF16, F16 or F64\. Use a checkpoint that is not quantized/);
  });

  it("throws for truncated weights", async () => {
    await write((tensors) => tensors);
    const path = join(folder, "model.safetensors");
    await writeFile(path, (await readFile(path)).subarray(0, -4));
    await expectError(/model\.safetensors: got a file of/);
  });

  it("reads the single file if the folder also has an index and shards, as transformers does", async () => {
    await write((tensors) => tensors);
    const zeros = (await goodTensors()).map((tensor) => {
      return { ...tensor, values: () => new Float32Array(tensor.shape.reduce((a, b) => a * b, 1)) };
    });
    await writeSafetensors(join(folder, "s0.safetensors"), zeros);
    const weight_map = Object.fromEntries(zeros.map(({ name }) => [name, "s0.safetensors"]));
    const index = (text: string) => writeFile(join(folder, "model.safetensors.index.json"), text);
    for (const text of [JSON.stringify({ weight_map }), "damaged"]) {
      await index(text);
      const loaded = await loadCausalLM(folder);
      expect(
        loaded
          .weights()[0]!
          .variable.dataSync()
          .some((value) => value !== 0),
      ).toBe(true);
      loaded.dispose();
    }
  });

  it("throws for an index with a path, a missing shard or the wrong shard", async () => {
    const tensors = await goodTensors();
    const shards = [tensors.slice(0, 5), tensors.slice(5)];
    for (const [i, shard] of shards.entries())
      await writeSafetensors(join(folder, `s${i}.safetensors`), shard);
    await writeFile(join(folder, "config.json"), JSON.stringify(tinyConfig));
    const map = Object.fromEntries(
      shards.flatMap((shard, i) => shard.map(({ name }) => [name, `s${i}.safetensors`])),
    );
    const index = (weight_map: unknown) =>
      writeFile(join(folder, "model.safetensors.index.json"), JSON.stringify({ weight_map }));
    await index(map);
    (await loadCausalLM(folder)).dispose();
    const { name } = tensors[0]!;
    for (const path of [
      "../good/model.safetensors",
      "/etc/passwd",
      "a/b.safetensors",
      "..",
      ".x.safetensors",
      1,
    ]) {
      await index({ ...map, [name]: path });
      await expectError(/expected a plain file name that ends in \.safetensors/);
    }
    await index({ ...map, [name]: "s2.safetensors" });
    await expectError(/s2\.safetensors: got ENOENT/);
    await index({ ...map, [name]: "s1.safetensors" });
    await expectError(/got s1\.safetensors, expected .*s0\.safetensors/);
    await index([]);
    await expectError(/got no weight_map/);
    await writeSafetensors(join(folder, "s1.safetensors"), [...shards[1]!, tensors[0]!]);
    await index(map);
    await expectError(/got s0\.safetensors, expected .*s1\.safetensors/);
  });

  const goodTensors = () => tensorsOf(good);
});

async function tensorsOf(folder: string): Promise<TensorToWrite[]> {
  const file = await openSafetensors(join(folder, "model.safetensors"));
  const tensors: TensorToWrite[] = [];
  for (const { name, shape } of file.tensors.values()) {
    const values = (await file.read(name)) as Float32Array;
    tensors.push({ name, shape, values: () => values });
  }
  await file.close();
  return tensors;
}

it("names the folder that it cannot write", async () => {
  const model = createCausalLM(tinyConfig, { seed: "a" });
  const path = join(root, "a file");
  await writeFile(path, "");
  const error = await model.save(join(path, "folder")).catch((error: unknown) => error);
  expect(PeriodicEvalError.is(error, "store")).toBe(true);
  expect((error as Error).message).toMatch(/a file.*ENOTDIR/);
  model.dispose();
});
