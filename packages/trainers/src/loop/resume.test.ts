import { cp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineEvaluation, everyPercent, PeriodicCallback, type TrainerCallback } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { beforeAll, describe, expect, it } from "vitest";
import type { SFTConfig } from "../sft/sft-config.ts";
import { SFTTrainer, type SFTTrainerOptions } from "../sft/sft-trainer.ts";
import {
  checkpointFolder as checkpoint,
  killedAfter,
  wholeState,
} from "../testing/checkpoint-files.test-data.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  busyConfig,
  recording,
  rows,
  temporaryFolder,
  tokenizer,
  ungoverned,
  useWasm,
} from "../testing/tiny-run.test-data.ts";

beforeAll(useWasm);

const everyStep: Partial<SFTConfig> = { ...busyConfig, saveSteps: 1, keepCheckpoints: 99 };
const stateOf = (runDir: string, step: number) => wholeState(checkpoint(runDir, step));

/** Runs the twelve steps, or the remaining ones, from a model of this seed. */
async function train(runDir: string, options: Partial<SFTTrainerOptions> = {}, seed = "tiny") {
  const logger = recording();
  const model = tinyLM({ vocabSize: tokenizer.vocabSize, dropout: 0.2, seed });
  const base = {
    model,
    tokenizer,
    dataset: rows(20),
    runDir,
    config: everyStep,
    loggers: [logger],
    session: ungoverned,
  };
  try {
    return { logger, result: await new SFTTrainer({ ...base, ...options }).train() };
  } finally {
    model.dispose();
  }
}

/** A callback that measures at the start, at 70 % of the phase and at its end. */
function counting() {
  const evaluation = defineEvaluation({
    name: "count",
    version: "1",
    needs: ["tokenizer"],
    items: () => [{ id: "one" }],
    measure: async (_model, items) => items,
    metrics: ({ mean }) => ({ one: mean(() => 1) }),
  });
  return [new PeriodicCallback(evaluation, { id: "count", schedule: [everyPercent(70)] })];
}

const snapshotsOf = async (runDir: string) => (await readRun(runDir)).phases[0]!.snapshots;

/** Checkpoints beyond the last take most of the time of these trainings. */
const atEnd: Partial<SFTConfig> = { ...everyStep, saveSteps: null };

describe("resume", () => {
  /** A complete run with a checkpoint at every step. Tests copy from it. */
  let whole: string;
  let logger: ReturnType<typeof recording>;
  beforeAll(async () => {
    whole = await temporaryFolder();
    ({ logger } = await train(whole));
  });

  it("resumes bit-exactly from every step: weights, optimizer, losses, norms, learning rates", async () => {
    const { files } = await stateOf(whole, 12);
    expect(Object.keys(files)).toEqual([
      "config.json",
      "model.safetensors",
      "optimizer.safetensors",
      "trainables.safetensors",
    ]);
    expect(files).not.toEqual((await stateOf(whole, 11)).files);
    for (let step = 1; step <= 12; step += 1) {
      const runDir = await killedAfter(whole, step);
      // Other initial weights reveal everything that is not restored.
      const resumed = await train(runDir, { config: atEnd }, "another model");
      expect(resumed.result).toMatchObject({ steps: 12, resumedFrom: step });
      expect(resumed.logger.metrics).toEqual(logger.metrics.slice(step));
      expect((await stateOf(runDir, 12)).files).toEqual(files);
    }
  });

  it("takes no step in a finished phase, and returns its final loss", async () => {
    const runDir = await temporaryFolder();
    const first = await train(runDir, { config: atEnd });
    const before = await readFile(join(checkpoint(runDir, 12), "trainer_state.json"), "utf8");
    const again = await train(runDir, {}, "another model");
    expect(again.logger.metrics).toEqual([]);
    expect(again.result).toMatchObject({ steps: 12, resumedFrom: 12, finalLoss: first.result.finalLoss });
    expect(await readFile(join(checkpoint(runDir, 12), "trainer_state.json"), "utf8")).toBe(before);
  });

  it("measures at the end if a kill after the last checkpoint prevented it", async () => {
    const runDir = await temporaryFolder();
    await train(runDir, { config: atEnd, callbacks: counting() });
    const folder = join(runDir, "periodic_eval/train");
    const snapshots = async () =>
      (await readdir(folder)).filter((name) => /^count_step_\d+\.json$/.test(name)).sort();
    // 70 % of 12 steps is step ⌈8.4⌉.
    const all = ["count_step_0.json", "count_step_12.json", "count_step_9.json"];
    expect(await snapshots()).toEqual(all);
    await rm(join(folder, "count_step_12.json"));
    const again = await train(runDir, { callbacks: counting() }, "another model");
    expect(again.logger.metrics).toEqual([]);
    expect(await snapshots()).toEqual(all);
  });

  it("continues when maxSteps has grown", async () => {
    const runDir = await temporaryFolder();
    const constant = { ...atEnd, schedule: "constant", warmupSteps: 0 } as const;
    await train(runDir, { config: { ...constant, maxSteps: 5 } });
    const longer = await train(runDir, { config: { ...constant, maxSteps: 9 } }, "another model");
    expect(longer.result).toMatchObject({ steps: 9, resumedFrom: 5 });
    const straight = await train(await temporaryFolder(), {
      config: { ...constant, maxSteps: 9 },
    });
    expect(longer.logger.metrics).toEqual(straight.logger.metrics.slice(5));
  });

  it("continues a finished phase and an interrupted one with a larger maxSteps, and warns of the learning rates", async () => {
    for (const steps of [12, 4]) {
      const runDir = await killedAfter(whole, steps);
      const longer = await train(runDir, { config: { ...everyStep, maxSteps: 15 } }, "another model");
      expect(longer.result).toMatchObject({ steps: 15, resumedFrom: steps });
      expect(longer.logger.warnings[0]).toContain("the phase grew from 12 to 15 steps");
      const straight = await train(await temporaryFolder(), { config: { ...everyStep, maxSteps: 15 } });
      const ratesOf = (metrics: readonly { readonly learning_rate?: number }[]) =>
        metrics.map(({ learning_rate: rate }) => rate);
      expect(ratesOf(longer.logger.metrics)).toEqual(ratesOf(straight.logger.metrics).slice(steps));
    }
  });

  it("keeps the end's measurement of a phase that grows, and measures no threshold twice", async () => {
    const runDir = await temporaryFolder();
    const snapshots = () => snapshotsOf(runDir);
    await train(runDir, { config: atEnd, callbacks: counting() });
    const before = await snapshots();
    expect(before.map(({ step }) => step)).toEqual([0, 9, 12]);
    await train(runDir, { config: { ...atEnd, maxSteps: 15 }, callbacks: counting() }, "another model");
    const after = await snapshots();
    expect(after.map(({ step }) => step)).toEqual([0, 9, 12, 15]);
    expect(after.slice(0, 3)).toEqual(before);
  });

  it("measures the remaining thresholds where a longer phase has them", async () => {
    const runDir = await temporaryFolder();
    const config = { ...everyStep, maxSteps: 8 };
    await train(runDir, { config, callbacks: counting() });
    // 70 % is step 6 of 8 and step 11 of 15.
    const resumed = await killedAfter(runDir, 4);
    await cp(join(runDir, "periodic_eval"), join(resumed, "periodic_eval"), { recursive: true });
    await train(resumed, { config: { ...config, maxSteps: 15 }, callbacks: counting() }, "another model");
    expect((await snapshotsOf(resumed)).map(({ step }) => step)).toEqual([0, 11, 15]);
  });

  it("extends training with wsd that stopped before the decay exactly, and warns after", async () => {
    const wsd = { ...atEnd, schedule: "wsd", warmupSteps: 1, decaySteps: 3 } as const;
    const shorter = await temporaryFolder();
    await train(shorter, { config: { ...wsd, saveSteps: 1, maxSteps: 8 } });
    const straight = await train(await temporaryFolder(), { config: { ...wsd, maxSteps: 12 } });
    const longer = await train(
      await killedAfter(shorter, 5),
      { config: { ...wsd, maxSteps: 12 } },
      "another",
    );
    expect(longer.result).toMatchObject({ resumedFrom: 5, steps: 12 });
    expect(longer.logger.metrics).toEqual(straight.logger.metrics.slice(5));
    expect(longer.logger.warnings).toEqual([]);
    const late = await train(await killedAfter(shorter, 7), { config: { ...wsd, maxSteps: 12 } }, "another");
    expect(late.result).toMatchObject({ resumedFrom: 7, steps: 12 });
    expect(late.logger.warnings[0]).toContain("grew from 8 to 12 steps");
    await expect(train(await killedAfter(shorter, 7), { config: { ...wsd, maxSteps: 7 } })).rejects.toThrow(
      /step_7: got .*, expected .*maxSteps 8/,
    );
  });

  it("skips damaged checkpoints with a warning", async () => {
    const damages: readonly ((folder: string) => Promise<void>)[] = [
      (folder) => truncate(join(folder, "optimizer.safetensors"), 100),
      (folder) => rm(join(folder, "trainables.safetensors")),
      (folder) => truncate(join(folder, "trainer_state.json"), 40),
      (folder) => rm(join(folder, "trainer_state.json")),
      async (folder) => {
        const path = join(folder, "model.safetensors");
        const bytes = await readFile(path);
        bytes[bytes.length - 1]! ^= 1;
        await writeFile(path, bytes);
      },
      // One changed digit: still valid JSON, but another optimizer step would give other weights.
      async (folder) => {
        const path = join(folder, "trainer_state.json");
        const text = await readFile(path, "utf8");
        expect(text).toContain('"optimizer_steps": 7');
        await writeFile(path, text.replace('"optimizer_steps": 7', '"optimizer_steps": 2'));
      },
    ];
    for (const damage of damages) {
      const runDir = await killedAfter(whole, 4);
      await cp(checkpoint(whole, 7), checkpoint(runDir, 7), { recursive: true });
      await damage(checkpoint(runDir, 7));
      const files = await readdir(checkpoint(runDir, 7));
      const resumed = await train(runDir, { config: { ...everyStep, saveSteps: 7 } }, "another model");
      expect(resumed.result.resumedFrom).toBe(4);
      expect(resumed.logger.warnings[0]).toMatch(/step_7: skipped a damaged checkpoint: /);
      expect(resumed.logger.metrics).toEqual(logger.metrics.slice(4));
      expect((await stateOf(runDir, 7)).files).toEqual((await stateOf(whole, 7)).files);
      expect(await readdir(join(runDir, "checkpoints/.superseded/train.1/step_7"))).toEqual(files);
    }
  });

  it(`throws if every checkpoint is damaged by one byte, and overwrites nothing unless resume is "never"`, async () => {
    const runDir = await temporaryFolder();
    await train(runDir, { config: atEnd });
    const path = join(checkpoint(runDir, 12), "optimizer.safetensors");
    const bytes = await readFile(path);
    bytes[bytes.length - 1]! ^= 1;
    await writeFile(path, bytes);
    await expect(train(runDir)).rejects.toThrow(
      /checkpoints.train: got no complete checkpoint \(step_12: optimizer\.safetensors was changed\)/,
    );
    expect(await readFile(path)).toEqual(bytes);
    expect(await readdir(join(runDir, "checkpoints/train"))).toEqual(["step_12"]);
    expect((await train(runDir, { resume: "never" })).result.resumedFrom).toBeNull();
  });

  it("ignores and removes a checkpoint whose writing was interrupted", async () => {
    const runDir = await killedAfter(whole, 4);
    const folder = join(runDir, "checkpoints/train");
    await cp(checkpoint(whole, 9), join(folder, ".step_9.draft-0a"), { recursive: true });
    const { result } = await train(runDir, { config: atEnd });
    expect(result.resumedFrom).toBe(4);
    expect((await readdir(folder)).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it("throws for another configuration, other data or another model, and changes nothing", async () => {
    const runDir = await killedAfter(whole, 4);
    await expect(train(runDir, { config: { ...everyStep, batchSize: 5 } })).rejects.toThrow(
      /step_4: got batchSize 5, expected batchSize 3, as in the checkpoint\./,
    );
    // A cosine to step 9 has other learning rates from the start.
    await expect(train(runDir, { config: { ...everyStep, maxSteps: 9 } })).rejects.toMatchObject({
      where: expect.stringMatching(/step_4$/),
      got: "maxSteps 9",
      expected: "maxSteps 12, as in the checkpoint",
    });
    const longerAndOther = { ...everyStep, maxSteps: 15, batchSize: 5 };
    await expect(train(runDir, { config: longerAndOther })).rejects.toMatchObject({
      got: "batchSize 5, maxSteps 15",
      expected: "batchSize 3, maxSteps 12, as in the checkpoint",
    });
    await expect(train(runDir, { dataset: rows(20, "others") })).rejects.toThrow(
      /got different training rows, expected the same training rows, .*another runDir/,
    );
    const wider = tinyLM({ vocabSize: tokenizer.vocabSize + 1 });
    await expect(train(runDir, { model: wider })).rejects.toMatchObject({
      where: expect.stringContaining("trainables.safetensors, model.embed_tokens.weight"),
      got: "[261, 6]",
      expected: "[262, 6]",
    });
    wider.dispose();
    expect(await readdir(join(runDir, "checkpoints/train"))).toEqual(["step_4"]);
  });

  it("does not return a best checkpoint of another metric, or any with keepBest: null", async () => {
    const validated = await temporaryFolder();
    const validation = rows(4, "held out");
    const of = (keepBest: string | null) => ({
      validation,
      config: { ...everyStep, evalSteps: 2, keepBest },
    });
    const { result } = await train(validated, of("eval_loss"));
    expect(result.best).toMatchObject({ metric: "eval_loss" });
    // A finished phase does not validate again: the result comes from the checkpoint.
    for (const [keepBest, expected] of [
      ["eval_loss", result.best!.step],
      [null, undefined],
      ["eval_perplexity", undefined],
    ] as const) {
      expect((await train(validated, of(keepBest))).result.best?.step).toBe(expected);
    }
    const runDir = await killedAfter(validated, 4);
    expect((await train(runDir, of(null))).result.best).toBeNull();
    expect((await stateOf(runDir, 12)).best).toBeNull();
  });

  it(`starts over with resume "never", and moves the old checkpoints away`, async () => {
    const runDir = await temporaryFolder();
    await train(runDir, { config: atEnd });
    const again = await train(runDir, { config: atEnd, resume: "never" });
    expect(again.result.resumedFrom).toBeNull();
    expect(again.logger.metrics).toEqual(logger.metrics);
    expect(await readdir(join(runDir, "checkpoints/.superseded/train.1"))).toContain("step_12");
  });

  it("keeps only the newest checkpoints", async () => {
    const runDir = await temporaryFolder();
    await train(runDir, { config: { ...everyStep, keepCheckpoints: 3 } });
    expect((await readdir(join(runDir, "checkpoints/train"))).sort()).toEqual([
      "step_10",
      "step_11",
      "step_12",
    ]);
  });

  it("restores the state of callbacks", async () => {
    const runs: number[] = [];
    const counting = (): TrainerCallback => {
      let seen = 0;
      return {
        id: "counting",
        onStepEnd: () => void (seen += 1),
        onTrainEnd: () => void runs.push(seen),
        state: () => seen,
        restore: (state) => void (seen = Number(state)),
      };
    };
    const runDir = await temporaryFolder();
    const config = { ...everyStep, saveSteps: 5 };
    await train(runDir, { config, callbacks: [counting()] });
    await train(await killedAfter(runDir, 5), { config, callbacks: [counting()] });
    expect(runs).toEqual([12, 12]);
  });
});
