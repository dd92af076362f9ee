import { batchesOfEpoch, type BatchingOptions } from "./batching.ts";

export interface DataPlanOptions extends BatchingOptions {
  /** Batches per optimizer step. The last step of an epoch may have fewer. */
  readonly gradientAccumulation: number;
}

/** The rows of each optimizer step. The step number determines them, so that a resume needs no other cursor. */
export interface DataPlan {
  readonly stepsPerEpoch: number;
  /** Returns the micro-batches of the step after `step` completed ones, as row numbers. */
  microBatches(step: number): readonly (readonly number[])[];
}

/** Returns the optimizer steps of one epoch. */
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
