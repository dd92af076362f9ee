import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { loadCausalLM, loadLora, useBackend } from "@periodic-eval/models";
import { openSafetensors } from "@periodic-eval/safetensors";
import { describe, expect, it } from "vitest";
import { collate } from "../data/collate.ts";
import { AdamW } from "../optimizer/adamw.ts";
import { accumulateGradients } from "../sft/gradients.ts";
import { temporaryFolder } from "../testing/tiny-run.ts";
import { update } from "./update.ts";

const folder = join(process.env["PERIODIC_EVAL_FIXTURES"] ?? "../shared/fixtures", "training");
const present = existsSync(join(folder, "lora.json"));

interface Golden {
  readonly model: string;
  readonly hyper: {
    readonly lr: number;
    readonly betas: [number, number];
    readonly eps: number;
    readonly weight_decay: number;
    readonly grad_clip: number;
  };
  readonly input_ids: readonly (readonly number[])[];
  readonly labels: readonly (readonly number[])[];
  readonly trainable_params: number;
  readonly losses: readonly number[];
  readonly grad_norms: readonly number[];
  readonly loss_after: number;
  readonly merged_logits_row0_last: readonly number[];
}

/** Ten steps of torch.optim.AdamW (2.13.0, CPU, float32) on a PEFT 0.21.2 adapter of tiny-llama; see the fixtures' README. */
describe.skipIf(!present)("LoRA training equals PEFT's (needs ../shared/fixtures/training)", () => {
  it.each(["wasm", "cpu"])(
    "on %s: losses, norms, the final adapter and the merged model",
    async (backend) => {
      await useBackend({ backend });
      const golden = JSON.parse(readFileSync(join(folder, "lora.json"), "utf8")) as Golden;
      const { hyper } = golden;
      const base = await loadCausalLM(join(folder, golden.model));
      const plain = logitsOf(base, golden.input_ids);
      const lora = await loadLora(base, join(folder, "lora_init"));
      const saved = await temporaryFolder();
      await lora.save(saved);
      for (const name of ["adapter_config.json", "adapter_model.safetensors"]) {
        const [written, read] = [saved, join(folder, "lora_init")].map((at) => readFileSync(join(at, name)));
        if (name.endsWith(".json")) expect(JSON.parse(String(written))).toEqual(JSON.parse(String(read)));
        else expect(Buffer.compare(written!, read!)).toBe(0);
      }
      expect(lora.adapter).toBe("lora_init of tiny-llama");
      expect(lora.trainables().reduce((sum, { size }) => sum + size, 0)).toBe(golden.trainable_params);
      const optimizer = new AdamW(lora.trainables(), {
        betas: hyper.betas,
        epsilon: hyper.eps,
        weightDecay: hyper.weight_decay,
      });
      const rows = golden.input_ids.map((ids, i) => ({
        where: `row ${i}`,
        ids: Int32Array.from(ids),
        scored: Int32Array.from(ids.keys()).filter((at) => at > 0 && golden.labels[i]![at] !== -100),
      }));
      const batch = collate(rows);
      const work = {
        scored: batch.targets.length,
        tokens: batch.tokens,
        where: [],
        gradients: () => accumulateGradients(lora, [batch], () => () => () => 0.5),
      };
      const options = { learningRate: hyper.lr, maxGradNorm: hyper.grad_clip };
      const before = tf.memory().numTensors;
      for (const [step, loss] of golden.losses.entries()) {
        const result = await update(work, optimizer, options);
        expect(Math.abs(result.loss / loss - 1), `loss of step ${step + 1}`).toBeLessThan(1e-4);
        expect(
          Math.abs(result.gradNorm / golden.grad_norms[step]! - 1),
          `norm of step ${step + 1}`,
        ).toBeLessThan(1e-4);
        expect(logitsOf(lora.base, golden.input_ids)).toEqual(plain);
      }
      expect(tf.memory().numTensors).toBe(before);
      await lora.save(saved);
      // As far as full fine-tuning's weights may be: Adam turns a gradient near 0 into a whole step.
      const [tensors, merged] = ["adapter_model.safetensors", "model.safetensors"];
      expect(await furthest(join(saved, tensors), join(folder, "lora_final", tensors))).toBeLessThan(1e-3);
      await lora.saveMerged(saved);
      expect(await furthest(join(saved, merged), join(folder, "lora_merged.safetensors"))).toBeLessThan(1e-3);
      expect(Math.abs((await update(work, optimizer, options)).loss / golden.loss_after - 1)).toBeLessThan(
        1e-4,
      );
      optimizer.dispose();
      lora.dispose();

      const final = await loadLora(base, join(folder, "lora_final"));
      await final.saveMerged(saved);
      expect(await furthest(join(saved, merged), join(folder, "lora_merged.safetensors"))).toBeLessThan(1e-6);
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
