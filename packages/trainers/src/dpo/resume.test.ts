import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicCapabilityCallback, everyPercent, type TrainerCallback } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/core/snapshots";
import { createCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { verifyCheckpoint, type TrainerState } from "../checkpoint/trainer-state.ts";
import {
  busyConfig,
  preferences,
  questionFile,
  recording,
  temporaryFolder,
  tinyLlama,
  tokenizer,
  ungoverned,
} from "../testing/tiny-run.ts";
import { DPOTrainer, type DPOTrainerOptions } from "./dpo-trainer.ts";

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

const config = { ...busyConfig, disableDropout: false, maxSteps: 8, saveSteps: 1, keepCheckpoints: 99 };
const checkpoint = (runDir: string, step: number) => join(runDir, "checkpoints/train", `step_${step}`);
const filesOf = async (folder: string) => {
  const state = await verifyCheckpoint(folder);
  if (typeof state === "string") throw new Error(state);
  return state.files;
};

/** Dropout in model and adapter; the adapter alone is trained. */
async function train(runDir: string, options: Partial<DPOTrainerOptions> = {}, seed = "0") {
  const logger = recording();
  const base = createCausalLM(tinyLlama, { seed: "resume", dropout: 0.1, initStd: 0.1 });
  const model = withLora(base, { rank: 4, dropout: 0.2, seed });
  const given = {
    model,
    tokenizer,
    dataset: preferences(20),
    runDir,
    config,
    loggers: [logger],
    session: ungoverned,
  };
  try {
    const result = await new DPOTrainer({ ...given, ...options }).train();
    return { result, metrics: logger.metrics, warnings: logger.warnings };
  } finally {
    model.dispose();
    base.dispose();
  }
}

/** A run that was killed after the checkpoint of this step. */
async function killedAfter(whole: string, step: number): Promise<string> {
  const runDir = await temporaryFolder();
  await mkdir(join(runDir, "checkpoints/train"), { recursive: true });
  await cp(checkpoint(whole, step), checkpoint(runDir, step), { recursive: true });
  return runDir;
}

describe("a resume of DPO", () => {
  it.each(["copy", "base"] as const)(
    "is bit-exact from every step, reference %s: weights, optimizer, losses, rewards",
    async (reference) => {
      const whole = await temporaryFolder();
      const { metrics } = await train(whole, { reference });
      const files = await filesOf(checkpoint(whole, 8));
      for (let step = 1; step <= 8; step += reference === "copy" ? 1 : 3) {
        const runDir = await killedAfter(whole, step);
        const resumed = await train(runDir, { reference });
        expect(resumed.result).toMatchObject({ steps: 8, resumedFrom: step });
        expect(resumed.metrics).toEqual(metrics.slice(step));
        expect(await filesOf(checkpoint(runDir, 8))).toEqual(files);
      }
    },
  );

  it("reads the reference no second time, but where the file that keeps it is not what was written", async () => {
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

  it("refuses another reference, another loss and other preferences, changing nothing", async () => {
    const whole = await temporaryFolder();
    await train(whole, { reference: "base" });
    const runDir = await killedAfter(whole, 4);
    const kept = join("reference", "train.json");
    await cp(join(whole, kept), join(runDir, kept));
    const state = await readFile(join(checkpoint(runDir, 4), "trainer_state.json"), "utf8");
    const { exact } = JSON.parse(state) as TrainerState;
    expect(exact).toMatchObject({ beta: 0.1, lossType: "sigmoid", reference: expect.any(String) });
    const other = createCausalLM(tinyLlama, { seed: "another", initStd: 0.1 });
    await expect(train(runDir, { reference: other })).rejects.toThrow(/step_4: got reference "pe128:/);
    other.dispose();
    const ipo = { ...config, lossType: "ipo" as const };
    await expect(train(runDir, { reference: "base", config: ipo })).rejects.toThrow('got lossType "ipo"');
    await expect(train(runDir, { reference: "base", dataset: preferences(20, "x") })).rejects.toThrow(
      /got data "pe128:/,
    );
    expect(await readFile(join(checkpoint(runDir, 4), "trainer_state.json"), "utf8")).toBe(state);
    expect(await readFile(join(runDir, kept), "utf8")).toBe(await readFile(join(whole, kept), "utf8"));
  });
});

describe("the twin run of DPO", () => {
  it("ends in the same bits measured and not, and its train stream has the rewards", async () => {
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
    expect(await filesOf(checkpoint(watchedRun, 8))).toEqual(await filesOf(checkpoint(plainRun, 8)));
    expect(watched.warnings).toEqual([]);
    const { snapshots } = (await readRun(watchedRun)).phases[0]!;
    // Every 25 and every 50 percent, with the start.
    expect(snapshots.map(({ status }) => status)).toEqual(Array<string>(8).fill("complete"));
    expect(snapshots.flatMap(({ receipt }) => receipt).filter(({ intact }) => intact !== true)).toEqual([]);
    expect(seen).toContain("rewards/margins");
    expect(seen).toContain("logps/chosen");
  });
});
