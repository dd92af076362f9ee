import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { errorMessage, quoteValue } from "@periodic-eval/contracts/options";
import { useBackend, type LoraLM } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { verifyCheckpoint } from "../checkpoint/trainer-state.ts";
import { recording, temporaryFolder, weightsOf } from "../testing/tiny-run.test-data.ts";
import { answers, config, drawn, withModel, withTrainer } from "./sdpo-run.test-data.ts";

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

/** The same model with NaN weights. */
const notANumber = (logits: tf.Tensor2D): tf.Tensor2D =>
  tf.customGrad((x) => ({
    value: tf.mul(x as tf.Tensor2D, Number.NaN),
    gradFunc: (dy: tf.Tensor) => dy,
  }))(logits) as tf.Tensor2D;

it("throws for a second update, or a checkpoint, while one runs", async () => {
  await withModel(async (model) => {
    const runDir = await temporaryFolder();
    await withTrainer({ model, runDir }, async (trainer) => {
      const first = trainer.update(drawn());
      await expect(trainer.update(drawn())).rejects.toMatchObject({
        where: "SDPOTrainer.update",
        got: "a call while update runs",
        expected: "one call at a time",
      });
      await expect(trainer.save()).rejects.toMatchObject({
        where: "SDPOTrainer.save",
        got: "a call while update runs",
      });
      await expect(trainer.logProbs(answers)).rejects.toMatchObject({
        where: "SDPOTrainer.logProbs",
        got: "a call while update runs",
      });
      expect((await first).update).toBe(1);
      await trainer.save();
      expect((await trainer.update(drawn())).update).toBe(2);
    });
  });
});

/** A model that is not finite in one gradient step, which is one pass. */
function breakingAt(nth: number, model: LoraLM): LoraLM {
  let passes = 0;
  return {
    ...model,
    trainingLogits: (...given) => {
      const logits = model.trainingLogits(...given);
      passes += 1;
      return passes === nth ? notANumber(logits) : logits;
    },
  };
}

it("neither saves nor continues after a partly learned batch, until it is resumed", async () => {
  await withModel(async (model) => {
    const runDir = await temporaryFolder();
    await withTrainer({ model: breakingAt(3, model), runDir }, async (trainer) => {
      await trainer.save();
      const before = await weightsOf(model);
      await expect(trainer.update(drawn())).rejects.toThrow(/update 1, gradient step 3: got a loss of NaN/);
      expect(await weightsOf(model)).not.toEqual(before);
      const calls = [() => trainer.save(), () => trainer.update(drawn()), () => trainer.logProbs(answers)];
      for (const call of calls)
        await expect(call()).rejects.toThrow(/got weights that learned a part of a batch .* resume\(\)/);
      expect((await trainer.resume())!.state.step).toBe(0);
      expect(await weightsOf(model)).toEqual(before);
      expect((await trainer.update(drawn())).update).toBe(1);
    });
  });
});

describe("the advice on a non-finite loss", () => {
  const adviceOf = async (update: Promise<unknown>) => {
    const error: unknown = await update.catch((thrown: unknown) => thrown);
    return PeriodicEvalError.is(error, "model") ? error.fix : errorMessage(error);
  };
  const lowered = { config: { ...config, learningRate: 0.01 } };

  it("suggests resume() and another batch, or a new training with a lower rate, in the middle of a batch", async () => {
    const runDir = await temporaryFolder();
    await withModel((model) =>
      withTrainer({ model: breakingAt(6, model), runDir }, async (trainer) => {
        await trainer.update(drawn());
        await trainer.save();
        expect(await adviceOf(trainer.update(drawn()))).toBe(
          "Continue with another batch, but first undo what was learned of this one: resume() restores the last checkpoint; if " +
            "there is none, create a new model and trainer. A lower learningRate is a new training: use a new model and trainer, " +
            'with another runDir or resume("never").',
        );
        expect((await trainer.resume())!.state.step).toBe(1);
        expect((await trainer.update(drawn(answers.slice(1)))).update).toBe(2);
      }),
    );
    await withModel((model) =>
      withTrainer({ model, runDir, ...lowered }, async (trainer) => {
        await expect(trainer.resume()).rejects.toMatchObject({
          got: "learningRate 0.01",
          expected: "learningRate 0.02, as in the checkpoint",
        });
        expect(await trainer.resume("never")).toBeNull();
        expect((await trainer.update(drawn())).update).toBe(1);
      }),
    );
    await withModel(async (model) =>
      withTrainer({ model, runDir: await temporaryFolder(), ...lowered }, async (trainer) => {
        expect(await trainer.resume()).toBeNull();
        expect((await trainer.update(drawn())).update).toBe(1);
      }),
    );
  });

  it("suggests another batch in the first gradient step, with unchanged weights", async () => {
    await withModel((model) =>
      withTrainer({ model: breakingAt(5, model) }, async (trainer) => {
        await trainer.update(drawn());
        expect(await adviceOf(trainer.update(drawn()))).toMatch(
          /^Continue with another batch: the weights are unchanged\. /,
        );
        expect((await trainer.update(drawn(answers.slice(1)))).update).toBe(2);
      }),
    );
  });

  it("suggests a new model and trainer if there is no checkpoint", async () => {
    await withModel(async (model) =>
      withTrainer({ model: breakingAt(2, model), runDir: await temporaryFolder() }, async (trainer) => {
        await expect(trainer.update(drawn())).rejects.toThrow(/gradient step 2/);
        expect(await trainer.resume()).toBeNull();
        await expect(trainer.update(drawn())).rejects.toThrow("create a new model and trainer");
      }),
    );
  });
});

it("throws for an invalid `resume` before it reads a checkpoint, and for invalid save options before it writes one", async () => {
  const runDir = await temporaryFolder();
  await withModel((model) =>
    withTrainer({ model, runDir }, async (trainer) => {
      for (const maxUpdates of [0, -1, 1.5, Number.NaN, "4" as never])
        await expect(trainer.save({ maxUpdates })).rejects.toMatchObject({
          where: "SDPOTrainer.save options.maxUpdates",
          got: quoteValue(maxUpdates),
          expected: "a positive integer or null",
        });
      await expect(trainer.save({ maxupdates: 4 } as never)).rejects.toThrow('Did you mean "maxUpdates"?');
      expect(await readdir(runDir)).toEqual([]);
      expect(await verifyCheckpoint(await trainer.save({ maxUpdates: 1 }))).toMatchObject({ max_steps: 1 });
      await expect(trainer.resume("nevr" as never)).rejects.toMatchObject({
        where: "SDPOTrainer.resume",
        got: '"nevr"',
      });
      expect((await trainer.resume())!.state.step).toBe(0);
    }),
  );
});

describe("checkpoints", () => {
  const busy = { ...config, disableDropout: false, keepCheckpoints: 9 };
  const batches = [0, 1, 2, 3].map((i) => drawn(answers.slice(i % 2, 2 + (i % 2))));

  it("resume bit for bit, with losses, weights, optimizer and note", async () => {
    const runDir = await temporaryFolder();
    const filesOf = async (path: string) =>
      (JSON.parse(await readFile(join(path, "trainer_state.json"), "utf8")) as { files: object }).files;
    const whole = await withModel(
      (model) =>
        withTrainer({ model, runDir, config: busy }, async (trainer) => {
          expect(await trainer.resume()).toBeNull();
          const updates = [];
          const paths = [];
          for (const [i, batch] of batches.entries()) {
            updates.push(await trainer.update(batch));
            paths.push(await trainer.save({ note: { line: `id ${i}` }, maxUpdates: 4 }));
          }
          return { updates, paths };
        }),
      { dropout: 0.2 },
    );
    const copy = await temporaryFolder();
    await cp(whole.paths[1]!, join(copy, "checkpoints/sdpo/step_2"), { recursive: true });
    // Another initial adapter reveals everything that is not restored.
    await withModel(
      (model) =>
        withTrainer({ model, runDir: copy, config: busy }, async (trainer) => {
          const found = await trainer.resume();
          expect(found!.state).toMatchObject({
            note: { line: "id 1" },
            step: 2,
            max_steps: 4,
            finished: false,
            optimizer_steps: 8,
            loss: whole.updates[1]!.metrics.loss,
          });
          expect(trainer.updates).toBe(2);
          expect(await trainer.update(batches[2]!)).toEqual(whole.updates[2]);
          expect(await trainer.update(batches[3]!)).toEqual(whole.updates[3]);
          const last = await trainer.save({ maxUpdates: 4 });
          expect(await filesOf(last)).toEqual(await filesOf(whole.paths[3]!));
        }),
      { dropout: 0.2, loraSeed: "another" },
    );
  });

  it("skip a damaged one with a warning, and throw for another configuration or base", async () => {
    const runDir = await temporaryFolder();
    const logger = recording();
    await withModel((model) =>
      withTrainer({ model, runDir }, async (trainer) => {
        await trainer.update(batches[0]!);
        await trainer.save();
        await trainer.update(batches[1]!);
        await writeFile(join(await trainer.save(), "optimizer.safetensors"), "");
      }),
    );
    await withModel((model) =>
      withTrainer({ model, runDir, loggers: [logger] }, async (trainer) => {
        expect((await trainer.resume())!.state.step).toBe(1);
        expect(logger.warnings).toEqual([expect.stringMatching(/step_2.*skipped a damaged checkpoint/)]);
      }),
    );
    await withModel((model) =>
      withTrainer({ model, runDir, config: { ...config, alpha: 0.7 } }, async (trainer) => {
        await expect(trainer.resume()).rejects.toThrow(/got alpha 0.7, expected alpha 0.5/);
      }),
    );
    await withModel(
      (model) =>
        withTrainer({ model, runDir }, async (trainer) => {
          await expect(trainer.resume()).rejects.toThrow(/got different frozen weights/);
          expect(await trainer.resume("never")).toBeNull();
        }),
      { seed: "another base" },
    );
    await withModel((model) =>
      withTrainer({ model }, async (trainer) => {
        await expect(trainer.save()).rejects.toMatchObject({
          where: "trainer options.runDir",
          got: "no runDir",
        });
      }),
    );
  });
});
