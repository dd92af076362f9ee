import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { beforeEach, expect, it, vi } from "vitest";
import type { Json } from "@periodic-eval/contracts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { checkAdapterBase } from "./adapter-base.ts";

let root: string;
beforeEach(() => void (root = temporaryFolder()));

async function checkpoint(name: string, weights: string, config: Json = {}): Promise<string> {
  const folder = join(root, name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "config.json"), JSON.stringify(config));
  await writeFile(join(folder, "model.safetensors"), weights);
  return folder;
}

async function adapterOf(base: Json, frozenWeights?: string): Promise<string> {
  const folder = join(root, "adapter");
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, "adapter_config.json"),
    JSON.stringify({ base_model_name_or_path: base, r: 8 }),
  );
  if (frozenWeights !== undefined)
    await writeFile(join(folder, "trainer_state.json"), JSON.stringify({ exact: { frozenWeights } }));
  return folder;
}

/** Checks an adapter against a base whose weights have this hash. */
async function check(base: string, adapter: string, fingerprint: string | null = null): Promise<void> {
  const compare = await checkAdapterBase(adapter, base);
  await compare(() => fingerprint);
}

it("matches the same folder, however its path is written", async () => {
  const folder = await checkpoint("base", "B");
  for (const written of [`${folder}/`, relative(process.cwd(), folder), join(folder, "..", "base")])
    await check(folder, await adapterOf(written));
});

it("matches a folder with the same weights, and compares them before anything is loaded", async () => {
  const folder = await checkpoint("base", "B");
  await check(folder, await adapterOf(await checkpoint("copy", "B")));
  const other = await checkpoint("deeper/base", "C");
  await expect(checkAdapterBase(await adapterOf(other), folder)).rejects.toThrow(
    `adapter_config.json: base_model_name_or_path: got an adapter of "${other}", expected an adapter of "${folder}"`,
  );
});

/** Returns the warnings about a base and the base in an adapter's configuration. */
async function warningsOf(base: string, name: string): Promise<readonly string[]> {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  await check(base, await adapterOf(name));
  const lines = warn.mock.calls.map(([line]) => String(line));
  warn.mockRestore();
  return lines;
}

it("matches a hub name that ends like the folder's name, or like the name in its config.json", async () => {
  expect(await warningsOf(await checkpoint("smollm2-135m", "B"), "HuggingFaceTB/SmolLM2-135M")).toEqual([]);
  const named = await checkpoint("here", "B", { _name_or_path: "HuggingFaceTB/SmolLM2-135M" });
  expect(await warningsOf(named, "HuggingFaceTB/SmolLM2-135M")).toEqual([]);
  const cached = `models--HuggingFaceTB--SmolLM2-135M/snapshots/${"0".repeat(40)}`;
  expect(await warningsOf(await checkpoint(cached, "B"), "HuggingFaceTB/SmolLM2-135M")).toEqual([]);
  expect(await warningsOf("HuggingFaceTB/SmolLM2-135M@main", "HuggingFaceTB/SmolLM2-135M")).toEqual([]);
});

it.each([
  "unsloth/Qwen2.5-0.5B-Instruct-bnb-4bit",
  "C:\\Users\\me\\Qwen2.5-0.5B-Instruct\\",
  "/content/drive/MyDrive/Qwen2.5-0.5B-Instruct",
  "Qwen/Qwen2.5-0.5B",
])("warns once, and refuses nothing, for the base %s", async (name) => {
  const base = "qwen/Qwen2.5-0.5B-Instruct";
  expect(await warningsOf(base, name)).toEqual([
    expect.stringContaining(`was trained on ${JSON.stringify(name)}`),
  ]);
  expect(await warningsOf(base, name)).toEqual([]);
  expect((await warningsOf(`${base}@v2`, name))[0]).toContain(`${base}@v2: check that it is the same model`);
});

it("matches a renamed copy of a hub model that is in the cache", async () => {
  vi.stubEnv("HF_HUB_CACHE", root);
  const repository = "models--owner--tiny";
  const commit = "0".repeat(40);
  await checkpoint(`${repository}/snapshots/${commit}`, "B");
  await mkdir(join(root, repository, "refs"));
  await writeFile(join(root, repository, "refs", "main"), commit);
  expect(await warningsOf(await checkpoint("renamed", "B"), "owner/tiny")).toEqual([]);
  // A copy in another dtype has other bytes.
  expect(await warningsOf(await checkpoint("tiny", "C"), "owner/tiny")).toEqual([]);
  expect(await warningsOf(await checkpoint("another", "C"), "owner/tiny")).toHaveLength(1);
  vi.unstubAllEnvs();
});

it("compares the hash of the weights in a checkpoint of our trainers, whatever the base's name", async () => {
  const folder = await checkpoint("base", "B");
  const elsewhere = await checkpoint("other", "C");
  await check(folder, await adapterOf(elsewhere, "frozen-1"), "frozen-1");
  await expect(check(folder, await adapterOf(folder, "frozen-2"), "frozen-1")).rejects.toThrow(
    "the weights differ",
  );
  // Without a hash of the base, the bytes of the folders are compared.
  await check(folder, await adapterOf(folder, "frozen-2"));
  await expect(check(folder, await adapterOf(elsewhere, "frozen-1"))).rejects.toThrow("an adapter of");
});

it("accepts an adapter that names no base, and requires a string or null", async () => {
  const folder = await checkpoint("base", "B");
  await check(folder, await adapterOf(null));
  await check(folder, await adapterOf(""));
  await check(folder, "someone/adapter-on-the-hub");
  await expect(check(folder, await adapterOf(7))).rejects.toThrow(
    "adapter_config.json: base_model_name_or_path: got 7, expected a string or null",
  );
});
