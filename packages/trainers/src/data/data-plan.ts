import { batchesOfEpoch, type BatchingOptions } from "./batching.ts";

export interface DataPlanOptions extends BatchingOptions {
  /** Batches whose gradients make one optimizer step. An epoch's last group may be smaller, and is a step. */
  readonly gradientAccumulation: number;
}

/** Which rows each optimizer step trains on. The cursor is the step itself, so that a resume needs no other. */
export interface DataPlan {
  readonly stepsPerEpoch: number;
  /** Micro-batches of the step after `step` completed ones, as row numbers. */
  microBatches(step: number): readonly (readonly number[])[];
}

export function planData(lengths: readonly number[], options: DataPlanOptions): DataPlan {
  const { batchSize, gradientAccumulation } = options;
  const stepsPerEpoch = Math.ceil(Math.ceil(lengths.length / batchSize) / gradientAccumulation);
  let known = { epoch: -1, batches: [] as number[][] };
  return {
    stepsPerEpoch,
    microBatches(step) {
      const epoch = Math.floor(step / stepsPerEpoch);
      if (known.epoch !== epoch) known = { epoch, batches: batchesOfEpoch(lengths, epoch, options) };
      const first = (step % stepsPerEpoch) * gradientAccumulation;
      return known.batches.slice(first, first + gradientAccumulation);
    },
  };
}
