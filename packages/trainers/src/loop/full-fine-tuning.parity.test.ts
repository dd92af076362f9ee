import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type * as tf from "@tensorflow/tfjs-core";
import { weightName } from "@periodic-eval/core/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { openSafetensors } from "@periodic-eval/safetensors";
import { describe, expect, it } from "vitest";
import { collate } from "../data/collate.ts";
import { AdamW } from "../optimizer/adamw.ts";
import { accumulateGradients } from "../sft/gradients.ts";
import { update } from "./update.ts";

const folder = join(process.env["PERIODIC_EVAL_FIXTURES"] ?? "../shared/fixtures", "training");
const present = existsSync(join(folder, "full_ft.json"));

interface Summary {
  readonly shape: readonly number[];
  readonly sum: number;
  readonly l2: number;
  readonly first4: readonly number[];
}
interface Run {
  readonly losses: readonly number[];
  readonly grad_norms: readonly number[];
  readonly loss_after: number;
  readonly final_weights: Readonly<Record<string, Summary>>;
}
interface Golden extends Run {
  readonly hyper: {
    lr: number;
    betas: [number, number];
    eps: number;
    weight_decay: number;
    grad_clip: number;
  };
  readonly input_ids: readonly (readonly number[])[];
  readonly labels: readonly (readonly number[])[];
  readonly hf_trainer_groups: Run;
}

/** Ten steps of torch.optim.AdamW (2.13.0, CPU, float32) on every weight of tiny-llama; see the fixtures' README. */
describe.skipIf(!present)("full fine-tuning equals PyTorch's (needs ../shared/fixtures/training)", () => {
  const cases = [
    ["wasm", "all"],
    ["wasm", "no-norms"],
    ["cpu", "all"],
  ] as const;
  it.each(cases)("on %s, decay %s: losses, norms and final weights", async (backend, decay) => {
    await useBackend({ backend });
    const golden = JSON.parse(readFileSync(join(folder, "full_ft.json"), "utf8")) as Golden;
    const expected: Run = decay === "all" ? golden : golden.hf_trainer_groups;
    const { hyper } = golden;
    const model = await loadCausalLM(join(folder, "tiny-llama"));
    const optimizer = new AdamW(model.trainables(), {
      betas: hyper.betas,
      epsilon: hyper.eps,
      weightDecay: hyper.weight_decay,
      decay,
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
      gradients: () => accumulateGradients(model, [batch], () => () => () => 0.5),
    };
    const options = { learningRate: hyper.lr, maxGradNorm: hyper.grad_clip };
    for (const [step, loss] of expected.losses.entries()) {
      const result = await update(work, optimizer, options);
      expect(Math.abs(result.loss / loss - 1), `loss of step ${step + 1}`).toBeLessThan(1e-4);
      expect(
        Math.abs(result.gradNorm / expected.grad_norms[step]! - 1),
        `norm of step ${step + 1}`,
      ).toBeLessThan(1e-4);
    }
    for (const weight of model.weights()) {
      const { name } = weight;
      const { sum, l2, first4 } = expected.final_weights[name]!;
      const values = [...(await weight.read().data())];
      expect(Math.hypot(...values), name).toBeCloseTo(l2, 3);
      // A sum of 16,576 weights that may each be off by 1e-6.
      expect(Math.abs(values.reduce((total, value) => total + value, 0) - sum), name).toBeLessThan(0.02);
      expect(Math.abs(values[0]! - first4[0]!), name).toBeLessThan(1e-3);
    }
    if (decay === "all") await expectFinalWeights(model.trainables());
    expect(Math.abs((await update(work, optimizer, options)).loss / expected.loss_after - 1)).toBeLessThan(
      1e-4,
    );
    optimizer.dispose();
    model.dispose();
  });
});

/** Every weight within 1e-3 of `full_ft_final.safetensors`; linear maps are [out, in] there and [in, out] here. */
async function expectFinalWeights(variables: readonly tf.Variable[]): Promise<void> {
  const file = await openSafetensors(join(folder, "full_ft_final.safetensors"));
  for (const variable of variables) {
    const name = weightName(variable);
    const golden = await file.read(name);
    const [rows, columns = 1] = file.tensors.get(name)!.shape as [number, number?];
    const values = await variable.data();
    const isTransposed = name.includes("_proj") || name.includes("lm_head");
    let furthest = 0;
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const ours = values[isTransposed ? column * rows + row : row * columns + column]!;
        furthest = Math.max(furthest, Math.abs(ours - Number(golden[row * columns + column])));
      }
    }
    expect(furthest, name).toBeLessThan(1e-3);
  }
  await file.close();
}
