import { join } from "node:path";
import { useBackend } from "@periodic-eval/models";
import * as tf from "@tensorflow/tfjs-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadHarnessConfig } from "../config/load-config.ts";
import { runHarness, type HarnessPorts } from "./run-harness.ts";
import { afterUpdates } from "../engine/after-updates.test-data.ts";
import { localEngine } from "../engine/local-engine.ts";
import { talkativeParts, timelessLines } from "../engine/micro-world.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const engine = localEngine(talkativeParts);

const folder = temporaryFolder(afterAll);
beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

async function run(output: string, overrides: readonly string[], ports: Partial<HarnessPorts> = {}) {
  const config = await loadHarnessConfig({
    configName: "micro-world",
    overrides: [`output_dir=${join(folder, output)}`, ...overrides],
  });
  return (await runHarness(config, { engine, ...ports })).preferences;
}

const linesOf = (output: string, preference: string) => timelessLines(join(folder, output), preference);

describe("runHarness with the embedded model in this process", () => {
  const identity = ["preferences=[identity]", "metrics=quick", "num_steps=4", "training.learning_rate=0.002"];

  it("learns its identity and states it for held-out prompts", async () => {
    const { numTensors } = tf.memory();
    const { identity: summary } = await run("whole", identity);
    expect(summary).toMatchObject({ verdict: "learned", steps: 4 });
    expect(summary!.logprob_margin_delta).toBeGreaterThan(2);
    expect(summary!.logprob_margin_p).toBeLessThan(0.05);
    expect(summary!.final_compliance! - summary!.baseline_compliance!).toBeGreaterThan(0.1);
    expect(tf.memory().numTensors).toBe(numTensors);
  });

  it("learns to answer without emoji in four steps, from below 60 % to above 90 %", async () => {
    const few = ["preferences=[no_emoji]", "metrics=[logprob,compliance,general]", "num_steps=4"];
    const summary = (await run("no_emoji", few))["no_emoji"]!;
    expect(summary).toMatchObject({ verdict: "learned", steps: 4 });
    expect(summary.baseline_compliance).toBeLessThan(0.6);
    expect(summary.final_compliance).toBeGreaterThan(0.9);
    // Both scores are known: the model answers general questions before and after.
    expect(summary.capability_ratio).toBeGreaterThan(0.8);
  });

  it("resumes bit for bit after a crash between an update and its line", async () => {
    const cut = new Error("cut off");
    const failing = afterUpdates(engine, (updates) => {
      if (updates === 3) throw cut;
    });
    await expect(run("cut", identity, { engine: failing })).rejects.toBe(cut);
    expect(await linesOf("cut", "identity")).toHaveLength(2);
    await run("cut", identity);
    expect(await linesOf("cut", "identity")).toEqual(await linesOf("whole", "identity"));
  });

  it("reports collapse and its alerts at a learning rate of 0.1", async () => {
    const overrides = [
      "preferences=[concise]",
      "metrics=[collapse]",
      "num_steps=3",
      "collapse_steps=[2]",
      "training.learning_rate=0.1",
    ];
    const { concise } = await run("collapse", overrides);
    expect(concise!.verdict).toBe("collapsed");
    expect(concise!.collapse_alerts).toContain("baseline_drift");
  });
});
