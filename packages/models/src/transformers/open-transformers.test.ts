import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { filesOf, startHub, type HubServer } from "../../../data/src/hub/hub-server.test-data.ts";
import { exported, hasTransformers, microWorld, needsTransformers } from "../testing/onnx.test-data.ts";
import { openTransformers } from "./open-transformers.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const commit = "1".repeat(40);
const call = () => ({ signal: new AbortController().signal });

let hub: HubServer;
let cache = "";
beforeEach(async () => {
  hub = await startHub();
  cache = temporaryFolder();
  vi.stubEnv("HF_ENDPOINT", hub.url);
  vi.stubEnv("HF_HUB_CACHE", cache);
  for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE"]) vi.stubEnv(name, "");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await hub.close();
});

describe.skipIf(!hasTransformers)(`openTransformers (${needsTransformers})`, () => {
  it("downloads the files of one dtype, once, and describes their weights", async () => {
    const folder = await exported(microWorld);
    await writeFile(join(folder, "onnx", "model_q4.onnx"), "another dtype");
    const onnx = [...filesOf(join(folder, "onnx"))].map(([name, bytes]) => [`onnx/${name}`, bytes] as const);
    const files = new Map([...filesOf(microWorld), ...onnx]);
    hub.models.set("owner/world", { revisions: { main: commit }, commits: { [commit]: files } });
    const { model, dispose } = await openTransformers("owner/world");
    expect(model.identity).toMatchObject({ name: "owner/world", weights: expect.stringMatching(/^sha256:/) });
    const [next] = await model.nextToken([{ prompt: { text: "The lake" }, candidates: [1] }], call());
    expect(next!.nats[0]).toBeLessThan(0);
    await dispose();
    const snapshot = join(cache, "models--owner--world", "snapshots", commit);
    expect(await readdir(join(snapshot, "onnx"))).toEqual(["model.onnx"]);
    hub.requests.length = 0;
    await (await openTransformers("owner/world")).dispose();
    expect(hub.requests).toEqual([]);
    const other = openTransformers("owner/world", { dtype: "fp16" });
    await expect(other).rejects.toMatchObject({
      code: "model",
      where: "owner/world on the hub",
      got: "no onnx/model_fp16.onnx; only onnx/model.onnx, onnx/model_q4.onnx",
    });
  });

  it("throws for a damaged file", async () => {
    const folder = await exported(microWorld);
    await writeFile(join(folder, "onnx", "model.onnx"), "damaged");
    await expect(openTransformers(folder)).rejects.toMatchObject({
      code: "model",
      where: join(folder, "onnx/model.onnx"),
    });
  });

  it("throws for a folder without ONNX files, and for a wrong option", async () => {
    await mkdir(join(cache, "empty"));
    await expect(openTransformers(join(cache, "empty"))).rejects.toMatchObject({
      code: "model",
      got: "no ONNX file",
    });
    const wrong = { dtype: "q5" } as never;
    await expect(openTransformers("a/b", wrong)).rejects.toMatchObject({ code: "config", path: ["dtype"] });
  });
});
