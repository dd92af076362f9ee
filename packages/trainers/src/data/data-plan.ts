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

/** Of so many rows. */
export const stepsPerEpochOf = (
  rows: number,
  { batchSize, gradientAccumulation }: Pick<DataPlanOptions, "batchSize" | "gradientAccumulation">,
): number => Math.ceil(Math.ceil(rows / batchSize) / gradientAccumulation);

export function planData(lengths: readonly number[], options: DataPlanOptions): DataPlan {
  const { gradientAccumulation } = options;
  const stepsPerEpoch = stepsPerEpochOf(lengths.length, options);
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
