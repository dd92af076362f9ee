import { readdir } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import { PeriodicEvalError } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/contracts/options";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { beforeAll, describe, expect, it } from "vitest";
import { type SFTTrainerOptions } from "../sft/sft-trainer.ts";
import { busyConfig, recording, weightsOf, useWasm } from "../testing/tiny-run.test-data.ts";
import { openTiny, tinySFT } from "../sft/tiny-sft.test-data.ts";

beforeAll(useWasm);

describe("a non-finite loss", () => {
  /** Returns NaN logits in the third step, or from it or another pass on. */
  function poisoned(lasting = false, first = 5): TrainableLM {
    const model = openTiny();
    let passes = 0;
    return {
      ...model,
      // Two micro-batches per step: the fifth pass is the first of the third step.
      trainingLogits: (ids, targets, random) =>
        tf.tidy(() => {
          passes += 1;
          const logits = model.trainingLogits(ids, targets, random);
          return passes === first || (lasting && passes > first) ? tf.mul(logits, Number.NaN) : logits;
        }),
    };
  }

  it("throws an error that names step and rows, and leaves the weights and the last checkpoint unchanged", async () => {
    const model = poisoned();
    const before = tf.memory().numTensors;
    const { sft, runDir } = await tinySFT({
      model,
      config: { ...busyConfig, saveSteps: 1, keepCheckpoints: 9 },
    });
    const error = await sft.train().catch((thrown: unknown) => thrown);
    expect(PeriodicEvalError.is(error, "model")).toBe(true);
    expect(String(error)).toMatch(/phase train, step 3: got a loss of NaN .* on the rows dataset\[\d+\]/);
    expect(tf.memory().numTensors).toBe(before);
    expect((await readdir(join(runDir, "checkpoints/train"))).sort()).toEqual(["step_1", "step_2"]);
    expect((await weightsOf(model)).flat().every(Number.isFinite)).toBe(true);
  });

  it(`is skipped and counted with onNonFinite "skip"`, async () => {
    const logger = recording();
    const model = poisoned();
    const { sft } = await tinySFT({
      model,
      loggers: [logger],
      config: { ...busyConfig, onNonFinite: "skip" },
    });
    expect(await sft.train()).toMatchObject({ steps: 12, skippedUpdates: 1 });
    expect(logger.metrics[2]).toEqual({
      step: 3,
      skipped_updates: 1,
      learning_rate: expect.any(Number) as number,
    });
    expect(logger.warnings[0]).toContain("the update was skipped");
    expect((await weightsOf(model)).flat().every(Number.isFinite)).toBe(true);
  });

  it("throws after maxSkippedInARow skipped updates, also across a resume", async () => {
    const limit = { ...busyConfig, onNonFinite: "skip", saveSteps: 1, maxSkippedInARow: 4 } as const;
    const config = { ...limit, schedule: "constant" } as const;
    const first = await tinySFT({ model: poisoned(true), config: { ...config, maxSteps: 5 } });
    // Steps 3, 4 and 5.
    expect(await first.sft.train()).toMatchObject({ steps: 5, skippedUpdates: 3 });
    const again = await tinySFT({ model: poisoned(true), runDir: first.runDir, config });
    const { model } = again;
    // Five passes come first: steps 6 and 7 are finite; from the middle of step 8 on, all are NaN.
    await expect(again.sft.train()).rejects.toThrow(
      /step 12: got a loss of NaN .*, after 4 skipped updates in a row, expected finite numbers/,
    );
    expect((await weightsOf(model)).flat().every(Number.isFinite)).toBe(true);
    const lasting = await tinySFT({
      model: poisoned(true),
      runDir: first.runDir,
      config: { ...config, maxSkippedInARow: null },
    });
    // The run resumes at step 11 after three skipped updates; the first two passes are finite again.
    expect(await lasting.sft.train()).toMatchObject({ resumedFrom: 11, steps: 12 });
  });

  it("counts the skipped updates before the checkpoint as part of the row", async () => {
    const config = {
      ...busyConfig,
      schedule: "constant",
      onNonFinite: "skip",
      saveSteps: 1,
      maxSkippedInARow: 4,
    } as const;
    const first = await tinySFT({ model: poisoned(true), config: { ...config, maxSteps: 5 } });
    expect(await first.sft.train()).toMatchObject({ steps: 5, skippedUpdates: 3 });
    // Steps 3, 4, 5 and 6 are skipped; the next would be the fifth in a row.
    const again = await tinySFT({ model: poisoned(true, 1), runDir: first.runDir, config });
    await expect(again.sft.train()).rejects.toThrow(/step 7: got .*, after 4 skipped updates in a row/);
  });

  describe("the advice on a non-finite loss", () => {
    const adviceOf = async (options: Partial<SFTTrainerOptions>) => {
      const { sft, runDir } = await tinySFT({ model: poisoned(true), ...options });
      const error: unknown = await sft.train().catch((thrown: unknown) => thrown);
      return { runDir, advice: PeriodicEvalError.is(error) ? error.fix : errorMessage(error) };
    };

    it("offers a lower learning rate when there is no checkpoint", async () => {
      const { runDir, advice } = await adviceOf({});
      expect(advice).toBe(
        `Correct these rows, lower the phase's learningRate, or set onNonFinite: "skip", and train again: ` +
          "the phase has no checkpoint yet and starts over.",
      );
      const lowered = { ...busyConfig, learningRate: 0.01 };
      expect(await (await tinySFT({ runDir, config: lowered })).sft.train()).toMatchObject({
        resumedFrom: null,
        steps: 12,
      });
    });

    it("offers only another policy when a checkpoint exists", async () => {
      const config = { ...busyConfig, saveSteps: 1 };
      const { runDir, advice } = await adviceOf({ config });
      expect(advice).toContain(
        `To continue from ${join(runDir, "checkpoints/train/step_2")}, set onNonFinite: "skip" and train again`,
      );
      expect(advice).toContain('start over with resume: "never" or another runDir');
      const lowered = await tinySFT({ runDir, config: { ...config, learningRate: 0.01 } });
      await expect(lowered.sft.train()).rejects.toMatchObject({
        got: "learningRate 0.01",
        expected: "learningRate 0.05, as in the checkpoint",
      });
      const skipping = await tinySFT({ runDir, config: { ...config, onNonFinite: "skip" } });
      expect(await skipping.sft.train()).toMatchObject({ resumedFrom: 2, steps: 12 });
      const fresh = await tinySFT({ runDir, config: { ...config, learningRate: 0.01 }, resume: "never" });
      expect(await fresh.sft.train()).toMatchObject({ resumedFrom: null, steps: 12 });
    });

    it("does not suggest to skip updates if they are skipped already", async () => {
      const config = { ...busyConfig, onNonFinite: "skip", maxSkippedInARow: 2 } as const;
      expect((await adviceOf({ config })).advice).toContain("or raise maxSkippedInARow, and train again");
      const saved = await adviceOf({ config: { ...config, saveSteps: 1 } });
      expect(saved.advice).toMatch(/^To continue from .*step_4, raise maxSkippedInARow and train again/);
      expect(saved.advice).not.toContain('skip"');
      const raised = await tinySFT({
        runDir: saved.runDir,
        config: { ...config, saveSteps: 1, maxSkippedInARow: 3 },
      });
      expect(await raised.sft.train()).toMatchObject({ resumedFrom: 4, steps: 12 });
    });
  });
});
