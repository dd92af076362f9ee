import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { runPipeline } from "@periodic-eval/trainers";
import { hashFiles } from "@periodic-eval/store";
import { existsSync, readdirSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { hasBrowser, withPages } from "../../packages/dashboard/src/html/browser.test-data.ts";
import { buildExample } from "./build.ts";
import type { RunEnd } from "./messages.ts";
import { phases, sharedConfig } from "./run-config.ts";
import { serveFolder } from "./static-server.test-data.ts";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const tools = here("../../.cache/tools/browser");
/** The WebGPU backend that `npm run browser` downloaded last; null before the first download. */
const webgpu =
  (existsSync(tools) ? readdirSync(tools) : [])
    .map((name) => join(tools, name, "node_modules/@tensorflow/tfjs-backend-webgpu"))
    .filter((folder) => existsSync(folder))
    .toSorted((a, b) => statSync(a).ctimeMs - statSync(b).ctimeMs)
    .at(-1) ?? null;

const pages = withPages(
  async (folder) => {
    if (!hasBrowser) return "";
    await buildExample(folder, webgpu);
    return serveFolder(folder);
  },
  // SwiftShader computes on the CPU where there is no GPU.
  ["--enable-unsafe-webgpu", "--enable-features=Vulkan,WebGPU"],
);

async function trainInChromium(query: string): Promise<RunEnd & { readonly status: string }> {
  const screen = { viewport: { width: 1280, height: 900 }, colorScheme: "light" } as const;
  const { tab } = await pages.open(`${pages.address}${query}`, screen);
  await tab.waitForSelector(`body[data-state="idle"]`);
  await tab.click("#start");
  await tab.waitForSelector(`body[data-state="finished"]`, { timeout: 280_000 });
  const status = (await tab.textContent("#status"))!;
  const end = JSON.parse((await tab.getAttribute("body", "data-end"))!) as RunEnd;
  await tab.close();
  return { ...end, status };
}

describe.skipIf(!hasBrowser)("the example page on engines (needs Chromium)", () => {
  it("ends with the bits of the same training in Node", async () => {
    await useBackend({ backend: "wasm" });
    const world = here("../../packages/cli/assets/micro-world");
    const runDir = await mkdtemp(join(tmpdir(), "browser-"));
    const model = await loadCausalLM(world);
    const results = await runPipeline(
      phases.map(({ name, dataset, learningRate }) => ({
        phase: name,
        dataset: join(world, dataset),
        config: { learningRate },
      })),
      {
        model,
        tokenizer: await loadTokenizer(world),
        runDir,
        config: { ...sharedConfig, maxSteps: 3, saveSteps: null },
        loggers: [],
      },
    );
    const { checkpoint } = results.at(-1)!;
    const files = ["trainables.safetensors", "optimizer.safetensors"].map((file) => join(checkpoint!, file));
    const weights = await hashFiles(files);
    model.dispose();
    await rm(runDir, { recursive: true });
    const query = "?steps=3&save=1&questions=12&callbacks=capability&backend=wasm";
    expect((await trainInChromium(query)).weights).toBe(weights);
  });

  it.skipIf(webgpu === null)("trains on WebGPU, and its receipts hold", async () => {
    const end = await trainInChromium("?steps=1&save=1&questions=4&callbacks=capability&backend=webgpu");
    expect(end).toMatchObject({ isFinished: true, undisturbed: "yes" });
    expect(end.status).toContain("Training undisturbed: yes");
  });
});
