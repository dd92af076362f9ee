import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { useBackend, type LoraLM } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { recording, temporaryFolder, weightsOf } from "../testing/tiny-run.ts";
import { answers, config, drawn, withModel, withTrainer } from "./sdpo-run.test-data.ts";

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

/** As it is, but NaN. */
const notANumber = (logits: tf.Tensor2D): tf.Tensor2D =>
  tf.customGrad((x) => ({
    value: tf.mul(x as tf.Tensor2D, Number.NaN),
    gradFunc: (dy: tf.Tensor) => dy,
  }))(logits) as tf.Tensor2D;

it("refuses a second update, or a checkpoint, while one runs", async () => {
  await withModel(async (model) => {
    const runDir = await temporaryFolder();
    await withTrainer({ model, runDir }, async (trainer) => {
      const first = trainer.update(drawn());
      await expect(trainer.update(drawn())).rejects.toThrow(
        "SDPOTrainer update: got a call while update runs, expected one after the other.",
      );
      await expect(trainer.save()).rejects.toThrow("SDPOTrainer save: got a call while update runs");
      expect((await first).update).toBe(1);
      await trainer.save();
      expect((await trainer.update(drawn())).update).toBe(2);
    });
  });
});

it("neither saves nor goes on from a batch half learned, until it is resumed", async () => {
  await withModel(async (model) => {
    const runDir = await temporaryFolder();
    // Two gradient steps; then nothing is finite any more.
    let passes = 0;
    const breaking = {
      ...model,
      trainingLogits: (...given: Parameters<LoraLM["trainingLogits"]>) => {
        const logits = model.trainingLogits(...given);
        passes += 1;
        return passes === 3 ? notANumber(logits) : logits;
      },
    };
    await withTrainer({ model: breaking, runDir }, async (trainer) => {
      await trainer.save();
      const before = await weightsOf(model);
      await expect(trainer.update(drawn())).rejects.toThrow(/update 1, gradient step 3: got a loss of NaN/);
      expect(await weightsOf(model)).not.toEqual(before);
      for (const call of [() => trainer.save(), () => trainer.update(drawn())])
        await expect(call()).rejects.toThrow(/got weights that learned a part of a batch .* resume\(\)/);
      expect((await trainer.resume())!.state.step).toBe(0);
      expect(await weightsOf(model)).toEqual(before);
      expect((await trainer.update(drawn())).update).toBe(1);
    });
  });
});

describe("checkpoints", () => {
  const busy = { ...config, disableDropout: false, keepCheckpoints: 9 };
  const batches = [0, 1, 2, 3].map((i) => drawn(answers.slice(i % 2, 2 + (i % 2))));

  it("go on bit for bit: losses, weights, optimizer; with what was noted", async () => {
    const runDir = await temporaryFolder();
    const filesOf = async (path: string) =>
      (JSON.parse(await readFile(join(path, "trainer_state.json"), "utf8")) as { files: object }).files;
    const whole = await withModel(
      (model) =>
        withTrainer({ model, runDir, config: busy }, async (trainer) => {
          expect(await trainer.resume()).toBeNull();
          const told = [];
          const paths = [];
          for (const [i, batch] of batches.entries()) {
            told.push(await trainer.update(batch));
            paths.push(await trainer.save({ note: { line: `id ${i}` }, maxUpdates: 4 }));
          }
          return { told, paths };
        }),
      { dropout: 0.2 },
    );
    const copy = await temporaryFolder();
    await cp(whole.paths[1]!, join(copy, "checkpoints/sdpo/step_2"), { recursive: true });
    // Another adapter to begin with: whatever is not restored shows.
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
            loss: whole.told[1]!.metrics.loss,
          });
          expect(trainer.updates).toBe(2);
          expect(await trainer.update(batches[2]!)).toEqual(whole.told[2]);
          expect(await trainer.update(batches[3]!)).toEqual(whole.told[3]);
          const last = await trainer.save({ maxUpdates: 4 });
          expect(await filesOf(last)).toEqual(await filesOf(whole.paths[3]!));
        }),
      { dropout: 0.2, loraSeed: "another" },
    );
  });

  it("pass over a torn one, aloud, and refuse another configuration or base", async () => {
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
        expect(logger.warnings).toEqual([expect.stringMatching(/step_2.*torn and passed over/)]);
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
          await expect(trainer.resume()).rejects.toThrow(/frozenWeights/);
          expect(await trainer.resume("never")).toBeNull();
        }),
      { seed: "another base" },
    );
    await withModel((model) =>
      withTrainer({ model }, async (trainer) => {
        await expect(trainer.save()).rejects.toThrow("SDPOTrainer save: got a trainer without runDir");
      }),
    );
  });
});
