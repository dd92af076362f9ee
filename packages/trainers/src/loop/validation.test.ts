import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import type { Logger, TrainerCallback } from "@periodic-eval/core";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { createCausalLM } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import type { TrainerState } from "../checkpoint/trainer-state.ts";
import { SFTTrainer, type SFTTrainerOptions } from "../sft/sft-trainer.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import {
  busyConfig,
  recording,
  rows,
  temporaryFolder,
  tinyLlama,
  tokenizer,
  weightsOf,
  useWasm,
} from "../testing/tiny-run.test-data.ts";
import { isBetter, type Best } from "./training-data.ts";

beforeAll(useWasm);

const open = (): TrainableLM => tinyLM({ vocabSize: tokenizer.vocabSize, dropout: 0.2 });

async function train(options: Partial<SFTTrainerOptions>) {
  const runDir = options.runDir ?? (await temporaryFolder());
  const logger = recording();
  const model = options.model ?? open();
  const base = { tokenizer, dataset: rows(20), config: busyConfig, loggers: [logger] };
  const result = await new SFTTrainer({ ...base, ...options, model, runDir }).train();
  const weights = await weightsOf(model);
  model.dispose();
  const losses = logger.metrics.flatMap(({ step, eval_loss }) =>
    eval_loss === undefined ? [] : [[step!, eval_loss]],
  );
  return { runDir, logger, result, weights, losses };
}

const stateOf = async (checkpoint: string | null) =>
  JSON.parse(await readFile(join(checkpoint!, "trainer_state.json"), "utf8")) as TrainerState;

describe("validation", () => {
  it("computes Σ NLL / Σ tokens and its exponential, without dropout", async () => {
    // With all logits 0, every token has probability 1/V.
    const uniform = open();
    for (const variable of uniform.trainables()) variable.assign(tf.zeros(variable.shape));
    const still = { ...busyConfig, learningRate: 0, maxSteps: 1, warmupSteps: 0 };
    const { logger } = await train({ model: uniform, validation: rows(7, "held out"), config: still });
    expect(logger.metrics[0]!["eval_loss"]).toBeCloseTo(Math.log(tokenizer.vocabSize), 5);
    expect(logger.metrics[0]!["eval_perplexity"]! / tokenizer.vocabSize).toBeCloseTo(1, 5);
    // The same rows in one batch as a training step, and three by three: each token has the same weight.
    const config = { ...still, gradientAccumulation: 1, batchSize: 20 };
    const model = tinyLM({ vocabSize: tokenizer.vocabSize });
    const [whole] = (await train({ model, config })).logger.metrics;
    const parted = await train({
      model: tinyLM({ vocabSize: tokenizer.vocabSize }),
      config: { ...config, batchSize: 3 },
      validation: rows(20),
    });
    expect(Math.abs(parted.logger.metrics[0]!["eval_loss"]! / whole!["loss"]! - 1)).toBeLessThan(1e-6);
  });

  it("gives the same loss with packing: no document sees another", async () => {
    const model = () => createCausalLM(tinyLlama, { seed: "packed", initStd: 0.2 });
    const still = { ...busyConfig, learningRate: 0, maxSteps: 1, warmupSteps: 0, maxLength: 40 };
    const [packed, apart] = await Promise.all(
      [true, false].map(async (packing) => {
        const options = { model: model(), validation: rows(9, "held out"), config: { ...still, packing } };
        return (await train(options)).logger.metrics[0]!["eval_loss"]!;
      }),
    );
    expect(Math.abs(packed! / apart! - 1)).toBeLessThan(1e-6);
  });

  it("does not disturb training: bits, losses and memory equal those of a run without it", async () => {
    const plain = await train({});
    const before = tf.memory().numTensors;
    const watched = await train({ validation: rows(9, "held out"), config: { ...busyConfig, evalSteps: 1 } });
    expect(tf.memory().numTensors).toBe(before);
    expect(watched.weights).toEqual(plain.weights);
    const ofTraining = watched.logger.metrics.map(
      ({ eval_loss: _loss, eval_perplexity: _perplexity, ...rest }) => rest,
    );
    expect(ofTraining).toEqual(plain.logger.metrics);
    expect(watched.losses).toHaveLength(12);
    expect(watched.logger.warnings).toEqual([]);
  });

  it("runs at the end of each epoch or every evalSteps, and at the end, even if nothing else is logged", async () => {
    const config = { ...busyConfig, logSteps: 50 };
    // 20 rows, 3 per batch, 2 batches per step: 4 steps per epoch.
    const epochs = await train({ validation: rows(4, "held out"), config: { ...config, maxSteps: 10 } });
    expect(epochs.losses.map(([step]) => step)).toEqual([4, 8, 10]);
    const steps = await train({ validation: rows(4, "held out"), config: { ...config, evalSteps: 5 } });
    expect(steps.losses.map(([step]) => step)).toEqual([5, 10, 12]);
    expect(steps.logger.metrics.map(({ step }) => step)).toEqual([1, 5, 10, 12]);
  });

  it("runs once if a callback stops training, and not if a run is aborted", async () => {
    const stopAt = (step: number): TrainerCallback => ({
      id: "stop",
      onStepEnd: ({ progress, requestStop }) => void (progress.step === step && requestStop("enough")),
    });
    const config = { ...busyConfig, logSteps: 50, evalSteps: 4, learningRate: 0 };
    const held = { validation: rows(4, "held out"), config };
    const between = await train({ ...held, callbacks: [stopAt(6)] });
    expect(between.losses.map(([step]) => step)).toEqual([4, 6]);
    expect(between.result).toMatchObject({ steps: 6, stopReason: "enough" });
    // The weights do not change, and a tie is not a new best.
    expect(between.result.best).toMatchObject({ step: 4 });
    const due = await train({ ...held, callbacks: [stopAt(8)] });
    expect(due.losses.map(([step]) => step)).toEqual([4, 8]);
    const again = await train({ ...held, callbacks: [stopAt(6)], runDir: between.runDir });
    expect(again.losses).toEqual([]);
    const controller = new AbortController();
    const abort: TrainerCallback = {
      id: "abort",
      onStepEnd: ({ progress }) => void (progress.step === 6 && controller.abort()),
    };
    const aborted = await train({ ...held, callbacks: [abort], signal: controller.signal });
    expect(aborted.losses.map(([step]) => step)).toEqual([4]);
  });

  it("does not count towards tokens per second", async () => {
    const run = async (more: Partial<SFTTrainerOptions>) => {
      let seconds = 0;
      const inner = open();
      // A training pass takes a quarter of a second, a validation pass 200.
      const model: TrainableLM = {
        ...inner,
        trainingLogits(...given) {
          seconds += 0.25;
          return inner.trainingLogits(...given);
        },
        logitsAt(...given) {
          seconds += 200;
          return inner.logitsAt!(...given);
        },
      };
      const speeds: number[] = [];
      const loggers: Logger[] = [
        { name: "speed", train: (metrics) => void speeds.push(metrics["tokens_per_second"]!) },
      ];
      await train({ model, loggers, session: { clock: () => seconds }, ...more });
      return { speeds, seconds };
    };
    const plain = await run({});
    const validated = await run({
      validation: rows(2, "held out"),
      config: { ...busyConfig, evalSteps: 3 },
    });
    // One batch of held-out rows at steps 3, 6, 9 and 12.
    expect(validated.seconds - plain.seconds).toBe(800);
    expect(validated.speeds).toEqual(plain.speeds);
  });

  it("holds out a share of the rows, which are not trained on", async () => {
    const config = { ...busyConfig, gradientAccumulation: 1, maxSteps: null, validationShare: 0.25 };
    const [trained, heldOut] = [new Set<string>(), new Set<string>()];
    const note = (ids: tf.Tensor2D, into: Set<string>) => {
      for (const row of ids.arraySync()) {
        // Removes padding and the end token, which only the longest row of a batch lacks.
        const text = tokenizer.decode(row.slice(0, row.findLastIndex((id) => id !== 0) + 1));
        into.add(text.replace(/<\|end\|>$/, ""));
      }
    };
    const inner = open();
    const model: TrainableLM = {
      ...inner,
      trainingLogits(ids, ...rest) {
        note(ids, trained);
        return inner.trainingLogits(ids, ...rest);
      },
      logitsAt(ids, targets) {
        note(ids, heldOut);
        return inner.logitsAt!(ids, targets);
      },
    };
    const { result, losses } = await train({ model, config });
    expect([trained.size, heldOut.size]).toEqual([15, 5]);
    expect([...heldOut].filter((row) => trained.has(row))).toEqual([]);
    // 15 of 20 rows, 3 per step.
    expect(result).toMatchObject({ steps: 5, maxSteps: 5 });
    expect(losses.map(([step]) => step)).toEqual([5]);
  });

  it("warns of bad rows by file and line, and of a loss that is not finite", async () => {
    const bad = { messages: [{ role: "user", content: "and?" }] } as const;
    const { result, logger } = await train({ validation: [...rows(2, "held out"), bad] });
    expect(result.badRows).toMatchObject([{ where: "dataset[2]" }]);
    expect(logger.warnings[0]).toMatch(/^validation: 1 of 3 rows/);
    const model = open();
    const broken = {
      ...model,
      logitsAt: (...args: Parameters<NonNullable<TrainableLM["logitsAt"]>>) =>
        tf.mul(model.logitsAt!(...args), Number.NaN),
    } as TrainableLM;
    const nan = await train({ model: broken, validation: rows(2, "held out") });
    expect(nan.losses).toEqual([]);
    expect(nan.logger.warnings[0]).toBe("phase train, step 4: eval_loss is NaN");
    expect(nan.result.best).toBeNull();
  });

  it.each<[Partial<SFTTrainerOptions>, object]>([
    [
      { validation: "nowhere.jsonl" },
      { code: "data", where: "nowhere.jsonl", got: "a path which does not exist" },
    ],
    [
      { validation: rows(2), config: { validationShare: 0.1 } },
      { path: ["validationShare"], got: "0.1 together with validation rows" },
    ],
    [{ config: { evalSteps: 3 } }, { path: ["evalSteps"], got: "3 without validation rows" }],
    [
      { validation: rows(2), config: { keepBest: "eval_los" } },
      { path: ["keepBest"], got: '"eval_los"', expected: expect.stringMatching(/^"eval_loss" or /) },
    ],
  ])("rejects %#", async (options, error) => {
    await expect(train(options)).rejects.toMatchObject(error);
  });
});

describe("the best checkpoint", () => {
  const overfitting = {
    dataset: rows(1),
    validation: rows(6, "others"),
    config: {
      ...busyConfig,
      maxSteps: 20,
      learningRate: 0.3,
      schedule: "constant",
      evalSteps: 2,
      keepCheckpoints: 1,
    },
  } as const;

  it("stays beside the newest checkpoints, and is named by trainer_state.json and the result", async () => {
    const { runDir, result, losses } = await train(overfitting);
    const [step, value] = losses.reduce((least, one) => (one[1]! < least[1]! ? one : least));
    // Otherwise the newest checkpoint would be the best, and the test would show nothing.
    expect(step).toBeLessThan(20);
    const folder = join(runDir, "checkpoints/train");
    expect(result.best).toEqual({
      metric: "eval_loss",
      value,
      step,
      checkpoint: join(folder, `step_${step}`),
    });
    expect((await readdir(folder)).sort()).toEqual([`step_${step}`, "step_20"].sort());
    expect((await stateOf(result.checkpoint)).best).toMatchObject({ metric: "eval_loss", value, step });
    expect((await stateOf(result.best!.checkpoint)).best).toMatchObject({ step });
  });

  it("is the last checkpoint if a callback stops training at the lowest loss", async () => {
    const stop: TrainerCallback = {
      id: "stop",
      onStepEnd: ({ progress, requestStop }) => void (progress.step === 3 && requestStop("enough")),
    };
    const seen: number[] = [];
    const listening: TrainerCallback = {
      id: "listening",
      onLog: ({ metrics }) => void (metrics["eval_loss"] === undefined || seen.push(metrics["eval_loss"])),
    };
    const dataset = rows(6, "others");
    const config = { ...overfitting.config, evalSteps: 10, learningRate: 0.02 };
    const { result, losses } = await train({ ...overfitting, dataset, config, callbacks: [stop, listening] });
    expect(losses.map(([step]) => step)).toEqual([3]);
    expect(seen).toEqual([losses[0]![1]]);
    expect(result.best).toEqual({
      metric: "eval_loss",
      value: losses[0]![1],
      step: 3,
      checkpoint: result.checkpoint,
    });
  });

  it("is forgotten with a warning if it is missing on a resume, and is not compared across other rows", async () => {
    const { runDir, result } = await train({
      ...overfitting,
      config: { ...overfitting.config, maxSteps: 10 },
    });
    await rm(result.best!.checkpoint, { recursive: true });
    const again = await train({ ...overfitting, runDir });
    expect(again.logger.warnings[0]).toMatch(/the best checkpoint is damaged, and another one will be kept/);
    const later = again.losses.reduce((least, one) => (one[1]! < least[1]! ? one : least));
    expect(again.result.best).toMatchObject({ step: later[0], value: later[1] });
  });

  it("is null with keepBest: null", async () => {
    const { runDir, result } = await train({
      ...overfitting,
      config: { ...overfitting.config, keepBest: null },
    });
    expect(result.best).toBeNull();
    expect(await readdir(join(runDir, "checkpoints/train"))).toEqual(["step_20"]);
  });

  it.each<[Partial<Best>, boolean]>([
    [{ value: 1.9 }, true],
    [{ value: 2 }, false],
    [{ value: 2.1 }, false],
    [{ value: Number.NaN }, false],
    [{ value: 2.1, rows: "others" }, true],
    [{ value: 2.1, metric: "eval_rewards/accuracies" }, true],
  ])("loses to %j: %s", (candidate, expected) => {
    const best = { metric: "eval_loss", value: 2, step: 4, rows: "these" };
    expect(isBetter({ ...best, step: 8, ...candidate }, best)).toBe(expected);
    const higher = { ...best, metric: "eval_rewards/accuracies" };
    expect(isBetter({ ...higher, value: 2.1 }, higher)).toBe(true);
    expect(isBetter({ ...higher, value: 1.9 }, higher)).toBe(false);
    // The reward of rejected completions should fall.
    for (const metric of ["eval_rewards/rejected", "eval_logps/rejected"]) {
      const lower = { ...best, metric };
      expect(isBetter({ ...lower, value: 1.9 }, lower)).toBe(true);
      expect(isBetter({ ...lower, value: 2.1 }, lower)).toBe(false);
    }
  });
});
