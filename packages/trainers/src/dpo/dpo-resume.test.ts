import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { PeriodicCapabilityCallback, everyPercent, type TrainerCallback } from "@periodic-eval/core";
import { createCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { checkpointFolder, killedAfter, wholeState } from "../testing/checkpoint-files.test-data.ts";
import { notIntact, snapshotsOf, trainDPO } from "../testing/recorded-training.test-data.ts";
import {
  busyConfig,
  preferences,
  questionFile,
  temporaryFolder,
  tinyLlama,
} from "../testing/tiny-run.test-data.ts";
import type { DPOTrainerOptions } from "./dpo-trainer.ts";

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

const config = { ...busyConfig, disableDropout: false, maxSteps: 8, saveSteps: 1, keepCheckpoints: 99 };
const filesOf = async (runDir: string, step: number) =>
  (await wholeState(checkpointFolder(runDir, step))).files;

/** Dropout in model and adapter; only the adapter is trained. */
async function train(runDir: string, options: Partial<DPOTrainerOptions> = {}) {
  const base = createCausalLM(tinyLlama, { seed: "resume", dropout: 0.1, initStd: 0.1 });
  const model = withLora(base, { rank: 4, dropout: 0.2 });
  try {
    return await trainDPO({ model, dataset: preferences(20), config, ...options, runDir });
  } finally {
    model.dispose();
    base.dispose();
  }
}

describe("a resume of DPO", () => {
  it.each(["copy", "base"] as const)(
    "is bit-exact from every step, with reference %s: weights, optimizer, losses, rewards",
    async (reference) => {
      const whole = await temporaryFolder();
      const { metrics } = await train(whole, { reference });
      const files = await filesOf(whole, 8);
      for (let step = 1; step <= 8; step += reference === "copy" ? 1 : 3) {
        const runDir = await killedAfter(whole, step);
        const resumed = await train(runDir, { reference, config: { ...config, saveSteps: null } });
        expect(resumed.result).toMatchObject({ steps: 8, resumedFrom: step });
        expect(resumed.metrics).toEqual(metrics.slice(step));
        expect(await filesOf(runDir, 8)).toEqual(files);
      }
    },
  );

  it("runs the reference once, and again only if the file with its log-probs was changed", async () => {
    let passes = 0;
    const frozen = createCausalLM(tinyLlama, { seed: "frozen", initStd: 0.1 });
    const trainingLosses: typeof frozen.trainingLosses = (...args) => {
      passes += 1;
      return frozen.trainingLosses(...args);
    };
    const reference = { ...frozen, trainingLosses };
    const whole = await temporaryFolder();
    const { metrics } = await train(whole, { reference });
    // 20 pairs in batches of 3.
    expect(passes).toBe(7);
    const kept = join("reference", "train.json");
    const text = await readFile(join(whole, kept), "utf8");
    const content = JSON.parse(text) as { ref_chosen_logps: number[] };
    content.ref_chosen_logps[3]! += 0.5;
    const cases = [
      [text, 0],
      [JSON.stringify(content), 7],
      [text.slice(0, 200), 7],
    ] as const;
    for (const [found, expected] of cases) {
      const runDir = await killedAfter(whole, 5);
      await mkdir(join(runDir, "reference"));
      await writeFile(join(runDir, kept), found);
      passes = 0;
      const resumed = await train(runDir, { reference });
      expect(passes).toBe(expected);
      expect(resumed.metrics).toEqual(metrics.slice(5));
      expect(await readFile(join(runDir, kept), "utf8")).toBe(text);
    }
    frozen.dispose();
  });

  it("runs the reference again for an adapter of another scale: the same weights, other log-probs", async () => {
    const base = createCausalLM(tinyLlama, { seed: "resume", initStd: 0.1 });
    const numbersOf = async (runDir: string, alpha: number) => {
      const model = withLora(base, { rank: 4, alpha });
      // With B = 0 the scale has no effect.
      for (const variable of model.trainables()) tf.tidy(() => variable.assign(tf.fill(variable.shape, 0.1)));
      await train(runDir, { model, resume: "never", config: { ...config, maxSteps: 1, warmupSteps: 0 } });
      model.dispose();
      const text = await readFile(join(runDir, "reference/train.json"), "utf8");
      return (JSON.parse(text) as { ref_chosen_logps: number[] }).ref_chosen_logps;
    };
    const runDir = await temporaryFolder();
    const before = await numbersOf(runDir, 8);
    const expected = await numbersOf(await temporaryFolder(), 32);
    expect(expected).not.toEqual(before);
    expect(await numbersOf(runDir, 32)).toEqual(expected);
    base.dispose();
  });

  it("throws for another reference, another loss or other preferences, and changes nothing", async () => {
    const whole = await temporaryFolder();
    await train(whole, { reference: "base" });
    const runDir = await killedAfter(whole, 4);
    const kept = join("reference", "train.json");
    await cp(join(whole, kept), join(runDir, kept));
    const state = await wholeState(checkpointFolder(runDir, 4));
    expect(state.exact).toMatchObject({ beta: 0.1, lossType: "sigmoid", reference: expect.any(String) });
    const other = createCausalLM(tinyLlama, { seed: "another", initStd: 0.1 });
    await expect(train(runDir, { reference: other })).rejects.toThrow(
      /step_4: got different reference model, expected the same reference model,/,
    );
    other.dispose();
    const ipo = { ...config, lossType: "ipo" as const };
    await expect(train(runDir, { reference: "base", config: ipo })).rejects.toMatchObject({
      got: 'lossType "ipo"',
    });
    await expect(train(runDir, { reference: "base", dataset: preferences(20, "x") })).rejects.toThrow(
      /got different training rows, .*expected the same training rows,/,
    );
    expect(await wholeState(checkpointFolder(runDir, 4))).toEqual(state);
    expect(await readFile(join(runDir, kept), "utf8")).toBe(await readFile(join(whole, kept), "utf8"));
  });
});

describe("the twin run of DPO", () => {
  it("ends with the same bits with and without measurements, and logs the rewards", async () => {
    const [plainRun, watchedRun] = [await temporaryFolder(), await temporaryFolder()];
    const plain = await train(plainRun);
    const questions = await questionFile();
    const seen: string[] = [];
    const listening: TrainerCallback = {
      id: "listening",
      onStepEnd: ({ metrics }) => void seen.push(...Object.keys(metrics ?? {})),
    };
    const callbacks = [
      listening,
      new PeriodicCapabilityCallback({ questions, schedule: [everyPercent(25)] }),
      new PeriodicCapabilityCallback({ questions, id: "base", on: "base", schedule: [everyPercent(50)] }),
    ];
    const watched = await train(watchedRun, { callbacks });
    expect(watched.metrics).toEqual(plain.metrics);
    expect(await filesOf(watchedRun, 8)).toEqual(await filesOf(plainRun, 8));
    expect(watched.warnings).toEqual([]);
    const snapshots = await snapshotsOf(watchedRun);
    // Every 25 and every 50 percent, with the start.
    expect(snapshots.map(({ status }) => status)).toEqual(Array<string>(8).fill("complete"));
    expect(notIntact(snapshots)).toEqual([]);
    expect(seen).toContain("rewards/margins");
    expect(seen).toContain("logps/chosen");
  });
});
