import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type * as tf from "@tensorflow/tfjs-core";
import type { TrainableLM } from "@periodic-eval/core/tfjs";
import { openSafetensors } from "@periodic-eval/safetensors";
import { expect } from "vitest";
import { collate } from "../data/collate.ts";
import { update } from "../loop/update.ts";
import { GradientNorm } from "../optimizer/clipping.ts";
import { AdamW, type AdamWOptions } from "../optimizer/adamw.ts";
import { batchGradients } from "../sft/gradients.ts";

/** Trainings that PyTorch did; see the README of the fixtures. */
export const references = join(process.env["PERIODIC_EVAL_FIXTURES"] ?? "../shared/fixtures", "training");

export const hasReference = (file: string): boolean => existsSync(join(references, file));

/** Whether native TensorFlow is installed. */
export const hasNative = ((): boolean => {
  try {
    createRequire(import.meta.url).resolve("@tensorflow/tfjs-node");
    return true;
  } catch {
    return false;
  }
})();

export interface ReferenceRun {
  readonly losses: readonly number[];
  readonly grad_norms: readonly number[];
  readonly loss_after: number;
}

/** One batch, over and over. */
export interface Reference extends ReferenceRun {
  readonly hyper: {
    readonly lr: number;
    readonly betas: [number, number];
    readonly eps: number;
    readonly weight_decay: number;
    readonly grad_clip: number;
  };
  readonly input_ids: readonly (readonly number[])[];
  readonly labels: readonly (readonly number[])[];
}

export const readReference = <T>(file: string): T =>
  JSON.parse(readFileSync(join(references, file), "utf8")) as T;

/**
 * Each of our tensors is the file's of its name within `tolerance`, entry by entry; linear maps are [out, in] there and
 * [in, out] here. For tests.
 */
export async function expectStored(
  tensors: readonly { readonly name: string; readonly tensor: tf.Tensor }[],
  file: string,
  tolerance: number,
): Promise<void> {
  const stored = await openSafetensors(join(references, file));
  try {
    for (const { name, tensor } of tensors) {
      const golden = await stored.read(name);
      const [rows, columns = 1] = stored.tensors.get(name)!.shape as [number, number?];
      const values = await tensor.data();
      const isTransposed = name.includes("_proj") || name.includes("lm_head");
      let furthest = 0;
      for (let row = 0; row < rows; row += 1) {
        for (let column = 0; column < columns; column += 1) {
          const ours = values[isTransposed ? column * rows + row : row * columns + column]!;
          furthest = Math.max(furthest, Math.abs(ours - Number(golden[row * columns + column])));
        }
      }
      expect(furthest, name).toBeLessThan(tolerance);
    }
  } finally {
    await stored.close();
  }
}

export interface ReferenceTraining {
  /** Makes the run's steps; their losses and norms must be its within 1e-4 of them. */
  follow(run: ReferenceRun, afterStep?: () => void): Promise<void>;
  /** One step more, of which the loss is that after the run. */
  expectLossAfter(run: ReferenceRun): Promise<void>;
  /** The optimizer's tensors; the model is the caller's. */
  dispose(): void;
}

/** The reference's training on a model of ours. For tests. */
export function trainAsReference(
  model: TrainableLM,
  { hyper, input_ids, labels }: Reference,
  options: Pick<AdamWOptions, "decay"> = {},
): ReferenceTraining {
  const optimizer = new AdamW(model.trainables(), {
    betas: hyper.betas,
    epsilon: hyper.eps,
    weightDecay: hyper.weight_decay,
    ...options,
  });
  const rows = input_ids.map((ids, i) => ({
    where: `row ${i}`,
    ids: Int32Array.from(ids),
    scored: Int32Array.from(ids.keys()).filter((at) => at > 0 && labels[i]![at] !== -100),
  }));
  const batch = collate(rows);
  const work = {
    divisor: batch.targets.length,
    tokens: batch.tokens,
    where: [],
    gradients: () => batchGradients(model, batch, () => () => 0.5),
  };
  const gradientNorm = new GradientNorm();
  const step = () =>
    update(work, optimizer, { learningRate: hyper.lr, maxGradNorm: hyper.grad_clip, gradientNorm });
  const expectNear = (got: number, expected: number, what: string) =>
    expect(Math.abs(got / expected - 1), what).toBeLessThan(1e-4);
  return {
    async follow({ losses, grad_norms }, afterStep) {
      expect(losses).toHaveLength(10);
      for (const [index, expected] of losses.entries()) {
        const { loss, gradNorm } = await step();
        expectNear(loss, expected, `loss of step ${index + 1}`);
        expectNear(gradNorm, grad_norms[index]!, `norm of step ${index + 1}`);
        afterStep?.();
      }
    },
    async expectLossAfter({ loss_after }) {
      expectNear((await step()).loss, loss_after, "loss after the run");
    },
    dispose() {
      optimizer.dispose();
      gradientNorm.dispose();
    },
  };
}
