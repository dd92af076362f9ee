import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { beforeEach, expect, it, vi } from "vitest";
import type { Json } from "../contracts/json.ts";
import { temporaryFolder } from "../testing/temporary-folder.test-data.ts";
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

it("matches a hub name that ends like the folder's name, or like the name in its config.json", async () => {
  await check(await checkpoint("smollm2-135m", "B"), await adapterOf("HuggingFaceTB/SmolLM2-135M"));
  const named = await checkpoint("here", "B", { _name_or_path: "HuggingFaceTB/SmolLM2-135M" });
  await check(named, await adapterOf("HuggingFaceTB/SmolLM2-135M"));
  const cached = `models--HuggingFaceTB--SmolLM2-135M/snapshots/${"0".repeat(40)}`;
  await check(await checkpoint(cached, "B"), await adapterOf("HuggingFaceTB/SmolLM2-135M"));
  await check("HuggingFaceTB/SmolLM2-135M@main", await adapterOf("HuggingFaceTB/SmolLM2-135M"));
  for (const folder of [named, await checkpoint(cached, "B"), "HuggingFaceTB/SmolLM2-135M"])
    await expect(check(folder, await adapterOf("HuggingFaceTB/SmolLM2-360M"))).rejects.toThrow(
      'an adapter of "HuggingFaceTB/SmolLM2-360M"',
    );
});

it("matches a renamed copy of a hub model that is in the cache", async () => {
  vi.stubEnv("HF_HUB_CACHE", root);
  const repository = "models--owner--tiny";
  const commit = "0".repeat(40);
  await checkpoint(`${repository}/snapshots/${commit}`, "B");
  await mkdir(join(root, repository, "refs"));
  await writeFile(join(root, repository, "refs", "main"), commit);
  await check(await checkpoint("renamed", "B"), await adapterOf("owner/tiny"));
  // A copy in another dtype has other bytes: the name decides.
  await check(await checkpoint("tiny", "C"), await adapterOf("owner/tiny"));
  await expect(check(await checkpoint("another", "C"), await adapterOf("owner/tiny"))).rejects.toMatchObject({
    code: "model",
    path: [],
  });
  vi.unstubAllEnvs();
});

it("compares the hash of the weights in a checkpoint of our trainers, whatever the base's name", async () => {
  const folder = await checkpoint("base", "B");
  const elsewhere = await checkpoint("other", "C");
  await check(folder, await adapterOf(elsewhere, "frozen-1"), "frozen-1");
  await expect(check(folder, await adapterOf(folder, "frozen-2"), "frozen-1")).rejects.toThrow(
    "the weights differ",
  );
  // Without a hash of the base, only the names are compared.
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
