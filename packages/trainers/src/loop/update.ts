import * as tf from "@tensorflow/tfjs-core";
import { clipFactor, type GradientNorm } from "../optimizer/clipping.ts";
import type { Optimizer } from "../optimizer/types.ts";
import type { StepWork } from "./types.ts";

export interface UpdateOptions {
  readonly learningRate: number;
  /** Null never clips. */
  readonly maxGradNorm: number | null;
  readonly gradientNorm: GradientNorm;
}

export interface UpdateResult {
  /** The mean that is trained on. */
  readonly loss: number;
  /** Of the mean loss's gradients, before clipping. */
  readonly gradNorm: number;
  /** The other sums, as means, by name. */
  readonly means: Readonly<Record<string, number>>;
  /** False where loss or norm is NaN or Inf: the weights are then as they were. */
  readonly applied: boolean;
}

/** One optimizer step: gradients, their norm, clipping, update. Leaves no tensor behind. */
export async function update(
  work: StepWork,
  optimizer: Optimizer,
  { learningRate, maxGradNorm, gradientNorm }: UpdateOptions,
): Promise<UpdateResult> {
  const { loss: sum, gradients, sums = {} } = work.gradients();
  const mean = async (total: tf.Scalar) => (await total.data<"float32">())[0]! / work.divisor;
  try {
    const loss = await mean(sum);
    const gradNorm = ((await gradientNorm.of(Object.values(gradients))) ?? 0) / work.divisor;
    const means: Record<string, number> = {};
    for (const [name, total] of Object.entries(sums)) means[name] = await mean(total);
    const applied = Number.isFinite(loss) && Number.isFinite(gradNorm);
    if (applied) optimizer.apply(gradients, learningRate, clipFactor(gradNorm, maxGradNorm) / work.divisor);
    return { loss, gradNorm, means, applied };
  } finally {
    tf.dispose([sum, gradients, sums]);
  }
}
