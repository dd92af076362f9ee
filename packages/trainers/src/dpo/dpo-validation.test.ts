import { cp, mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { createCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { verifyCheckpoint } from "../checkpoint/trainer-state.ts";
import { trainDPO } from "../testing/recorded-training.test-data.ts";
import { busyConfig, preferences, temporaryFolder, tinyLlama } from "../testing/tiny-run.test-data.ts";
import { heldOutPairMetrics } from "./pair-batch.ts";
import type { DPOTrainerOptions } from "./dpo-trainer.ts";

beforeAll(async () => void (await useBackend({ backend: "wasm" })));

const config = { ...busyConfig, disableDropout: false, maxSteps: 8 };

/** Dropout in model and adapter; only the adapter is trained. */
async function train(options: Partial<DPOTrainerOptions> = {}, seed = "0") {
  const base = createCausalLM(tinyLlama, { seed: "validation", dropout: 0.2, initStd: 0.2 });
  const model = withLora(base, { rank: 4, dropout: 0.2, seed });
  try {
    const trained = await trainDPO({ model, dataset: preferences(20), config, ...options });
    const state = await verifyCheckpoint(trained.result.checkpoint!);
    if (typeof state === "string") throw new Error(state);
    return { ...trained, state };
  } finally {
    model.dispose();
    base.dispose();
  }
}

const valuesOf = (metrics: readonly Readonly<Record<string, number>>[], metric = "eval_loss") =>
  metrics.flatMap(({ step, [metric]: value }) => (value === undefined ? [] : [[step!, value] as const]));

const withoutEval = (metrics: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(metrics).filter(([name]) => !name.startsWith("eval_")));

describe("validation of DPO", () => {
  it("equals the metrics of a training step on the same pairs, as means over all pairs, under TRL's names", async () => {
    // A reference other than the model gives the pairs different weights.
    const reference = createCausalLM(tinyLlama, { seed: "another", initStd: 0.2 });
    const still = {
      ...config,
      disableDropout: true,
      learningRate: 0,
      maxSteps: 1,
      warmupSteps: 0,
      gradientAccumulation: 1,
    };
    const dataset = preferences(7);
    for (const lossType of ["sigmoid", "ipo"] as const) {
      const whole = { ...still, lossType, batchSize: 7 };
      const step = (await train({ dataset, reference, config: whole })).metrics[0]!;
      const parts = { ...still, lossType, batchSize: 3 };
      const [metrics] = (await train({ dataset, validation: dataset, reference, config: parts })).metrics;
      expect(Object.keys(metrics!).filter((name) => name.startsWith("eval_"))).toEqual(
        heldOutPairMetrics.map((name) => `eval_${name}`),
      );
      for (const name of heldOutPairMetrics) {
        const [found, expected] = [metrics![`eval_${name}`]!, step[name]!];
        expect(Math.abs(found - expected) / Math.max(1, Math.abs(expected)), name).toBeLessThan(1e-6);
      }
      expect(Math.abs(step["rewards/margins"]!)).toBeGreaterThan(1e-3);
    }
    reference.dispose();
  });

  it("does not disturb training: bits, losses and memory equal those of a run without it", async () => {
    const plain = await train();
    const before = tf.memory().numTensors;
    const watched = await train({
      validation: preferences(9, "held out"),
      config: { ...config, evalSteps: 1 },
    });
    expect(tf.memory().numTensors).toBe(before);
    expect(watched.state.files).toEqual(plain.state.files);
    expect(watched.metrics.map(withoutEval)).toEqual(plain.metrics);
    expect(valuesOf(watched.metrics)).toHaveLength(8);
    expect(watched.warnings).toEqual([]);
  });

  it("holds a share of the pairs out of training, and runs the reference on them too", async () => {
    const share = { ...config, gradientAccumulation: 1, maxSteps: null, validationShare: 0.25 };
    const { result, metrics } = await train({ config: share });
    // 15 of 20 pairs, 3 per step.
    expect(result).toMatchObject({ steps: 5, maxSteps: 5 });
    expect(valuesOf(metrics).map(([step]) => step)).toEqual([5]);
  });

  it.each(["eval_loss", "eval_rewards/margins"])("keeps the best checkpoint by %s", async (keepBest) => {
    const validation = preferences(6, "others");
    const overfitting = {
      ...config,
      learningRate: 0.1,
      schedule: "constant",
      evalSteps: 1,
      keepBest,
    } as const;
    const { result, metrics } = await train({ dataset: preferences(2), validation, config: overfitting });
    const [step, value] = valuesOf(metrics, keepBest).reduce((best, one) =>
      (keepBest === "eval_loss" ? one[1] < best[1] : one[1] > best[1]) ? one : best,
    );
    expect(result.best).toMatchObject({ metric: keepBest, value, step });
  });

  it("resumes exactly, with metrics, best and bits, and does not run the reference again", async () => {
    const validation = preferences(7, "held out");
    const validating = { ...config, saveSteps: 1, keepCheckpoints: 99, evalSteps: 3 };
    const frozen = createCausalLM(tinyLlama, { seed: "frozen", initStd: 0.2 });
    let passes = 0;
    const reference: typeof frozen = {
      ...frozen,
      trainingLosses(...args: Parameters<typeof frozen.trainingLosses>) {
        passes += 1;
        return frozen.trainingLosses(...args);
      },
    };
    const whole = await train({ reference, validation, config: validating });
    // 20 and 7 pairs, in batches of 3.
    expect(passes).toBe(7 + 3);
    expect(valuesOf(whole.metrics).map(([step]) => step)).toEqual([3, 6, 8]);
    const checkpoint = (runDir: string, step: number) => join(runDir, "checkpoints/train", `step_${step}`);
    for (const step of [1, 3, 5, 7]) {
      const runDir = await temporaryFolder();
      await mkdir(join(runDir, "checkpoints/train"), { recursive: true });
      for (let kept = 1; kept <= step; kept++)
        await cp(checkpoint(whole.runDir, kept), checkpoint(runDir, kept), { recursive: true });
      await cp(join(whole.runDir, "reference"), join(runDir, "reference"), { recursive: true });
      passes = 0;
      const once = { ...validating, saveSteps: null };
      const resumed = await train({ runDir, reference, validation, config: once }, "another");
      expect(passes).toBe(0);
      expect(resumed.result).toMatchObject({ steps: 8, resumedFrom: step });
      expect(resumed.metrics).toEqual(whole.metrics.slice(step));
      expect(resumed.state.files).toEqual(whole.state.files);
      expect(resumed.state.best).toEqual(whole.state.best);
    }
    // Validation rows may change, as with SFT: no weight depends on them; the best on other pairs is not compared.
    const kept = join("reference", "validation", "train.json");
    const text = await readFile(join(whole.runDir, kept), "utf8");
    const runDir = await temporaryFolder();
    await mkdir(join(runDir, "checkpoints/train"), { recursive: true });
    await cp(checkpoint(whole.runDir, 5), checkpoint(runDir, 5), { recursive: true });
    await cp(checkpoint(whole.runDir, 3), checkpoint(runDir, 3), { recursive: true });
    const others = await train({
      runDir,
      reference,
      validation: preferences(5, "others"),
      config: validating,
    });
    expect(others.state.files).toEqual(whole.state.files);
    expect(others.state.best!.rows).not.toBe(whole.state.best!.rows);
    expect(others.state.best!.step).toBeGreaterThan(5);
    expect(await readFile(join(runDir, kept), "utf8")).not.toBe(text);
    await rm(runDir, { recursive: true });
    frozen.dispose();
  });
});
