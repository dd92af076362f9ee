// Trains SmolLM2-135M-Instruct on feedback at ten times the default learning rate, which suits a model of its size. Five steps
// leave the model intact; two steps at a hundred times that rate do not (benchmarks/results/feedback.md).
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { useBackend } from "@periodic-eval/models";
import { describe, expect, it } from "vitest";
import { hasNative, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { smollm2 } from "../../../models/src/testing/fixtures.test-data.ts";
import { loadHarnessConfig } from "../config/load-config.ts";
import type { BaselineFile, StepLine } from "./files.ts";
import { runHarness } from "./run-harness.ts";
import { localEngine } from "../engine/local-engine.ts";
import { loraParts } from "../engine/lora-parts.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const isAvailable = existsSync(smollm2) && hasNative;

const rate = 3e-4;

/** Trains the preference `concise` and measures collapse after the last step. */
async function train(name: string, numSteps: number, overrides: readonly string[]) {
  await useBackend({ backend: nativeBackend });
  const output = join(temporaryFolder(), name);
  const config = await loadHarnessConfig({
    overrides: [
      `output_dir=${output}`,
      `base_model=${smollm2}`,
      "preferences=[concise]",
      `num_steps=${numSteps}`,
      "batch_size=2",
      `collapse_steps=[${numSteps - 1}]`,
      ...overrides,
    ],
  });
  const { preferences } = await runHarness(config, { engine: localEngine(loraParts(smollm2)) });
  const read = (file: string) => readFile(join(output, "concise", file), "utf8");
  const baseline = JSON.parse(await read("baseline.json")) as BaselineFile;
  const lines = (await read("steps.jsonl")).trim().split("\n");
  const last = JSON.parse(lines.at(-1)!) as StepLine;
  return { summary: preferences["concise"]!, steps: lines.length, baseline, collapse: last.eval.collapse! };
}

describe.skipIf(!isAvailable)(
  "runHarness with SmolLM2-135M-Instruct (with tfjs-node)",
  { timeout: 3_600_000 },
  () => {
    it("stays below every alert over five steps, with every collapse metric known", async () => {
      const { summary, steps, baseline, collapse } = await train("plain", 5, [
        "metrics=[logprob,collapse]",
        `training.learning_rate=${rate}`,
      ]);
      expect(steps).toBe(5);
      expect(summary).toMatchObject({ status: "finished", collapse_alerts: [] });
      expect(summary.verdict).not.toBe("collapsed");
      expect(summary.logprob_margin_delta).not.toBeNull();
      expect(summary.logprob_margin_delta).not.toBe(0);
      expect(baseline.eval.collapse).toMatchObject({ entropy_ratio: expect.closeTo(1, 6), alerts: [] });
      // Alerts start at a ratio of 0.6 and a drift of 2 nats.
      expect(Math.abs(1 - collapse.entropy_ratio!)).toBeLessThan(0.2);
      expect(Math.abs(collapse.baseline_drift!)).toBeLessThan(0.2);
      expect([collapse.own_drift, collapse.self_rouge_l]).not.toContain(null);
      expect(collapse.unknown).toEqual({});
    });

    it("reports collapse and its alerts at a hundred times the learning rate", async () => {
      const { summary, collapse } = await train("hundredfold", 2, [
        "metrics=[collapse]",
        `training.learning_rate=${100 * rate}`,
      ]);
      expect(summary.verdict).toBe("collapsed");
      expect(collapse.alerts).toContain("baseline_drift");
      expect(collapse.baseline_drift).toBeLessThan(-2);
      // Rounding decides where so large a step ends, and it differs by processor: in one repeated token (an entropy ratio of
      // 0.02 on AMD Turin) or in noise of high entropy.
      expect(collapse.alerts.includes("entropy_ratio")).toBe(collapse.entropy_ratio! < 0.6);
      expect(summary.collapse_alerts).toEqual(collapse.alerts);
    });
  },
);
