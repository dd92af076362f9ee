import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { useBackend } from "@periodic-eval/models";
import * as tf from "@tensorflow/tfjs-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadHarnessConfig } from "../config/load-config.ts";
import { httpEngine } from "../engine/http-engine.ts";
import { localEngine } from "../engine/local-engine.ts";
import { microWorldParts, timelessLines } from "../engine/micro-world.test-data.ts";
import type { FeedbackEngine } from "../engine/types.ts";
import type { BaselineFile } from "../harness/files.ts";
import { runHarness } from "../harness/run-harness.ts";
import { serveFeedback, type FeedbackService } from "./index.ts";

let folder = "";
let service: FeedbackService;
const serve = (port = 0) =>
  serveFeedback({ ...microWorldParts, model: "micro-world", root: join(folder, "adapters"), port });

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  folder = await mkdtemp(join(tmpdir(), "feedback-service-"));
  service = await serve();
  await run("local", localEngine(microWorldParts));
});
afterAll(async () => {
  await service.close();
  await rm(folder, { recursive: true });
});

async function run(output: string, engine: FeedbackEngine) {
  const config = await loadHarnessConfig({
    configName: "micro-world",
    overrides: [
      `output_dir=${join(folder, output)}`,
      "preferences=[identity]",
      "num_steps=3",
      "batch_size=2",
      "collapse_steps=[2]",
    ],
  });
  return (await runHarness(config, { engine })).preferences["identity"]!;
}

const lines = (output: string) => timelessLines(join(folder, output), "identity");
const baseline = async (output: string) => {
  const text = await readFile(join(folder, output, "identity", "baseline.json"), "utf8");
  const { timestamp: _t, lora_id: _l, ...rest } = JSON.parse(text) as BaselineFile;
  return rest;
};

describe("a run over the service", () => {
  it("is that of this process to the last bit, with no metric unknown", async () => {
    const { numTensors } = tf.memory();
    const summary = await run("served", httpEngine({ serviceUrl: service.url }));
    expect(summary.status).toBe("finished");
    expect(await baseline("served")).toEqual(await baseline("local"));
    const served = await lines("served");
    expect(served).toEqual(await lines("local"));
    expect(served[2]!.eval.collapse).toMatchObject({ unknown: {}, entropy_ratio: expect.any(Number) });
    expect(numTensors).toBeGreaterThanOrEqual(0);
  });
});
