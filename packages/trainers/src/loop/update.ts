import * as tf from "@tensorflow/tfjs-core";
import { clipFactor, globalNorm } from "../optimizer/clipping.ts";
import type { Optimizer } from "../optimizer/types.ts";
import type { StepWork } from "./types.ts";

export interface UpdateOptions {
  readonly learningRate: number;
  /** Null never clips. */
  readonly maxGradNorm: number | null;
}

export interface UpdateResult {
  /** Mean NLL of the scored tokens, in nats. */
  readonly loss: number;
  /** Of the mean loss's gradients, before clipping. */
  readonly gradNorm: number;
  /** False where loss or norm is NaN or Inf: the weights are then as they were. */
  readonly applied: boolean;
}

/** One optimizer step: gradients, their norm, clipping, update. Leaves no tensor behind. */
export async function update(
  work: StepWork,
  optimizer: Optimizer,
  { learningRate, maxGradNorm }: UpdateOptions,
): Promise<UpdateResult> {
  const { loss: sum, gradients } = work.gradients();
  try {
    const loss = (await sum.data<"float32">())[0]! / work.scored;
    const gradNorm = ((await globalNorm(Object.values(gradients))) ?? 0) / work.scored;
    const applied = Number.isFinite(loss) && Number.isFinite(gradNorm);
    if (applied) optimizer.apply(gradients, learningRate, clipFactor(gradNorm, maxGradNorm) / work.scored);
    return { loss, gradNorm, applied };
  } finally {
    tf.dispose([sum, gradients]);
  }
}
