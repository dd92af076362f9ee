import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { loadCausalLM, loadLora, useBackend } from "@periodic-eval/models";
import { openSafetensors } from "@periodic-eval/safetensors";
import { describe, expect, it } from "vitest";
import {
  hasNative,
  hasReference,
  readReference,
  references,
  trainAsReference,
  type Reference,
} from "../testing/reference-training.ts";
import { temporaryFolder } from "../testing/tiny-run.ts";

interface Golden extends Reference {
  readonly model: string;
  readonly trainable_params: number;
  readonly merged_logits_row0_last: readonly number[];
}

const file = "lora.json";
const present = hasReference(file);

/** Ten steps of torch.optim.AdamW (2.13.0, CPU, float32) on a PEFT 0.21.2 adapter of tiny-llama; see the fixtures' README. */
describe.skipIf(!present)("LoRA training equals PEFT's (needs ../shared/fixtures/training)", () => {
  it.each(["wasm", "cpu", ...(hasNative ? ["tfjs-node"] : [])])(
    "on %s: losses, norms, the final adapter and the merged model",
    async (backend) => {
      await useBackend({ backend });
      const golden = readReference<Golden>(file);
      const base = await loadCausalLM(join(references, golden.model));
      const plain = logitsOf(base, golden.input_ids);
      const lora = await loadLora(base, join(references, "lora_init"));
      const saved = await temporaryFolder();
      await lora.save(saved);
      for (const name of ["adapter_config.json", "adapter_model.safetensors"]) {
        const [written, read] = [saved, join(references, "lora_init")].map((at) =>
          readFileSync(join(at, name)),
        );
        if (name.endsWith(".json")) expect(JSON.parse(String(written))).toEqual(JSON.parse(String(read)));
        else expect(Buffer.compare(written!, read!)).toBe(0);
      }
      expect(lora.adapter).toBe("lora_init of tiny-llama");
      expect(lora.trainables().reduce((sum, { size }) => sum + size, 0)).toBe(golden.trainable_params);
      const before = tf.memory().numTensors;
      let looks = 0;
      const training = await trainAsReference(lora, golden, golden, {
        callbacks: [
          {
            id: "base",
            onStepEnd() {
              expect(logitsOf(lora.base, golden.input_ids)).toEqual(plain);
              looks += 1;
            },
          },
        ],
      });
      expect(looks).toBe(10);
      expect(tf.memory().numTensors).toBe(before);
      await lora.save(saved);
      // As far as full fine-tuning's weights may be: Adam turns a gradient near 0 into a whole step.
      const [tensors, merged] = ["adapter_model.safetensors", "model.safetensors"];
      expect(await furthest(join(saved, tensors), join(references, "lora_final", tensors))).toBeLessThan(
        1e-3,
      );
      await lora.saveMerged(saved);
      expect(await furthest(join(saved, merged), join(references, "lora_merged.safetensors"))).toBeLessThan(
        1e-3,
      );
      await training.expectLossAfter(golden);
      lora.dispose();

      const final = await loadLora(base, join(references, "lora_final"));
      await final.saveMerged(saved);
      expect(await furthest(join(saved, merged), join(references, "lora_merged.safetensors"))).toBeLessThan(
        1e-6,
      );
      final.dispose();
      base.dispose();
      const whole = await loadCausalLM(saved);
      const last = logitsOf(whole, golden.input_ids.slice(0, 1)).slice(
        -golden.merged_logits_row0_last.length,
      );
      last.forEach((logit, i) =>
        expect(Math.abs(logit - golden.merged_logits_row0_last[i]!)).toBeLessThan(1e-4),
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

/** The largest difference between two files of the same tensors. */
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
