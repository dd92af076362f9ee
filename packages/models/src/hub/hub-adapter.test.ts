import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { adapterFolder, loadLora } from "../lora/load-lora.ts";
import { withLora } from "../lora/with-lora.ts";
import { modelErrorOf } from "../testing/hostile.test-data.ts";
import { filesOf, startHub, type HubServer } from "../../../data/src/hub/hub-server.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const world = fileURLToPath(new URL("../../../cli/assets/micro-world", import.meta.url));
const commit = "1".repeat(40);

let hub: HubServer;
let cache = "";
let model: CheckpointLM;
const host = (name: string, files: ReadonlyMap<string, Buffer>) =>
  hub.models.set(name, { revisions: { main: commit }, commits: { [commit]: files } });
beforeEach(async () => {
  await useBackend({ backend: "cpu" });
  hub = await startHub();
  cache = temporaryFolder();
  vi.stubEnv("HF_ENDPOINT", hub.url);
  vi.stubEnv("HF_HUB_CACHE", cache);
  for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE"]) vi.stubEnv(name, "");
  model = await loadCausalLM(world);
});
afterEach(async () => {
  model.dispose();
  vi.unstubAllEnvs();
  await hub.close();
});

describe("loading a hub adapter", () => {
  it("downloads only the adapter's files, once", async () => {
    const created = withLora(model, { rank: 2 });
    const folder = join(cache, "created");
    await created.save(folder);
    created.dispose();
    host("owner/adapter", new Map([...filesOf(world), ...filesOf(folder)]));
    const lora = await loadLora(model, "owner/adapter");
    expect(lora.adapter).toBe(`owner/adapter of ${world}`);
    const fetched = join(cache, "models--owner--adapter", "snapshots", commit);
    expect((await readdir(fetched)).sort()).toEqual(["adapter_config.json", "adapter_model.safetensors"]);
    // A server reads it there.
    expect(await adapterFolder("owner/adapter")).toBe(fetched);
    lora.dispose();
    hub.requests.length = 0;
    (await loadLora(model, "owner/adapter")).dispose();
    expect(hub.requests).toEqual([]);
  });

  it("throws for a pickled adapter", async () => {
    host("owner/pickled", new Map([["adapter_model.bin", Buffer.from("x")]]));
    const { message } = await modelErrorOf(() => loadLora(model, "owner/pickled"));
    expect(message).toMatch(/owner\/pickled on the hub: got only adapter_model\.bin, a pickled/);
  });

  it("throws for the name of a whole model", async () => {
    host("owner/world", filesOf(world));
    const { message } = await modelErrorOf(() => loadLora(model, "owner/world"));
    expect(message).toMatch(/owner\/world on the hub: got no weights, expected adapter_model\.safetensors/);
  });
});
