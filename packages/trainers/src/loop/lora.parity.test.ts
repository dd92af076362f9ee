import { testedBackends } from "../../../models/src/testing/backends.test-data.ts";
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { loadCausalLM, loadLora, useBackend } from "@periodic-eval/models";
import { openSafetensors } from "@periodic-eval/safetensors";
import { describe, expect, it } from "vitest";
import { expectClose } from "../../../testing/src/expect-close.test-data.ts";
import { companionOf } from "../../../testing/src/fixtures.test-data.ts";
import {
  findReferences,
  readReference,
  trainAsReference,
  type Reference,
} from "../testing/reference-training.test-data.ts";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";

interface Golden extends Reference {
  readonly model: string;
  readonly trainable_params: number;
  readonly merged_logits_row0_last: readonly number[];
}

/** Ten steps of torch.optim.AdamW (2.13.0, CPU, float32) on a PEFT 0.21.2 adapter of a tiny Llama; see the fixtures' README. */
describe.each(findReferences("lora"))("LoRA training (%s)", (file) => {
  it.each(testedBackends)(
    "equals PEFT on %s in losses, norms, the final adapter and the merged model",
    async (backend) => {
      await useBackend({ backend });
      const golden = readReference<Golden>(file);
      const base = await loadCausalLM(join(dirname(file), golden.model));
      const [start, end] = [companionOf(file, /^lora.*init/), companionOf(file, /^lora.*final/)];
      const reference = companionOf(file, /^lora.*merged.*\.safetensors$/);
      const plain = logitsOf(base, golden.input_ids);
      const lora = await loadLora(base, start);
      const saved = await temporaryFolder();
      await lora.save(saved);
      for (const name of ["adapter_config.json", "adapter_model.safetensors"]) {
        const [written, read] = [saved, start].map((at) => readFileSync(join(at, name)));
        if (name.endsWith(".json")) expect(JSON.parse(String(written))).toEqual(JSON.parse(String(read)));
        else expect(Buffer.compare(written!, read!)).toBe(0);
      }
      const config = JSON.parse(readFileSync(join(start, "adapter_config.json"), "utf8"));
      expect(lora.adapter).toBe(`${basename(start)} of ${config.base_model_name_or_path}`);
      expect(lora.trainables().reduce((sum, { size }) => sum + size, 0)).toBe(golden.trainable_params);
      const before = tf.memory().numTensors;
      let steps = 0;
      const training = await trainAsReference(lora, golden, golden, {
        callbacks: [
          {
            id: "base",
            onStepEnd() {
              expect(logitsOf(lora.base, golden.input_ids)).toEqual(plain);
              steps += 1;
            },
          },
        ],
      });
      expect(steps).toBe(golden.losses.length);
      expect(tf.memory().numTensors).toBe(before);
      await lora.save(saved);
      // The tolerance of full fine-tuning: Adam turns a gradient near 0 into a whole step.
      const [tensors, merged] = ["adapter_model.safetensors", "model.safetensors"];
      expect(await furthest(join(saved, tensors), join(end, tensors))).toBeLessThan(golden.hyper.lr);
      await lora.saveMerged(saved);
      expect(await furthest(join(saved, merged), reference)).toBeLessThan(golden.hyper.lr);
      await training.expectLossAfter(golden);
      lora.dispose();

      const final = await loadLora(base, end);
      await final.saveMerged(saved);
      expect(await furthest(join(saved, merged), reference)).toBeLessThan(1e-6);
      final.dispose();
      base.dispose();
      const whole = await loadCausalLM(saved);
      const last = logitsOf(whole, golden.input_ids.slice(0, 1)).slice(
        -golden.merged_logits_row0_last.length,
      );
      last.forEach((logit, i) =>
        expectClose(logit, golden.merged_logits_row0_last[i]!, { absolute: 1e-4 }, `logit ${i}`),
      );
      whole.dispose();
    },
  );
});

function logitsOf(
  model: { logits(ids: tf.Tensor2D): tf.Tensor3D },
  rows: readonly (readonly number[])[],
): Float32Array {
  return tf.tidy(() => {
    const ids = tf.tensor2d(rows.flat(), [rows.length, rows[0]!.length], "int32");
    return model.logits(ids).dataSync() as Float32Array;
  });
}

/** Returns the largest difference between two files of the same tensors. */
async function furthest(path: string, reference: string): Promise<number> {
  const [ours, theirs] = [await openSafetensors(path), await openSafetensors(reference)];
  expect([...ours.tensors.keys()].sort()).toEqual([...theirs.tensors.keys()].sort());
  let largest = 0;
  for (const [name, { shape }] of ours.tensors) {
    expect(shape).toEqual(theirs.tensors.get(name)!.shape);
    const [own, other] = [(await ours.read(name)) as Float32Array, (await theirs.read(name)) as Float32Array];
    own.forEach((value, i) => (largest = Math.max(largest, Math.abs(value - other[i]!))));
  }
  await ours.close();
  await theirs.close();
  return largest;
}
