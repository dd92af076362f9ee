import { PeriodicEvalError } from "@periodic-eval/core";
import { namedStream, seedOf } from "@periodic-eval/core/random";

export interface BatchingOptions {
  readonly batchSize: number;
  readonly seed: string;
  readonly phase: string;
}

/** Batches per megabatch, which is sorted by length: enough for similar lengths, few enough to stay shuffled. */
const batchesPerMegabatch = 50;

/**
 * Returns the batches of one epoch as row numbers, every row once. Deterministic in its arguments. Shuffles the rows, cuts
 * them into megabatches, sorts each by length and cuts it into batches, as transformers' `LengthGroupedSampler` does. Unlike
 * it, then shuffles the batches, because a megabatch would otherwise run from its longest rows to its shortest.
 *
 * @param lengths Tokens of each row.
 * @param epoch 0 for the first.
 */
export function batchesOfEpoch(
  lengths: readonly number[],
  epoch: number,
  options: BatchingOptions,
): number[][] {
  const { batchSize, seed, phase } = options;
  const random = namedStream(seedOf(seed, phase, "shuffle", epoch));
  const order = shuffled(Array.from(lengths.keys()), random);
  const batches: number[][] = [];
  for (let start = 0; start < order.length; start += batchSize * batchesPerMegabatch) {
    const megabatch = order.slice(start, start + batchSize * batchesPerMegabatch);
    megabatch.sort((a, b) => lengths[b]! - lengths[a]!);
    for (let i = 0; i < megabatch.length; i += batchSize) batches.push(megabatch.slice(i, i + batchSize));
  }
  return shuffled(batches, random);
}

/** Shuffles an array in place (Fisher–Yates) and returns it. */
export function shuffled<T>(list: T[], random: () => number): T[] {
  for (let i = list.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [list[i], list[j]] = [list[j]!, list[i]!];
  }
  return list;
}

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

interface HoldOut {
  /** Row numbers to train on, ascending. */
  readonly training: readonly number[];
  /** Row numbers to validate on, ascending. */
  readonly validation: readonly number[];
}

/**
 * Splits rows at random. Deterministic in its arguments.
 *
 * @param share In (0, 1); rounded to whole rows, at least one.
 * @throws PeriodicEvalError `data` if no row is left to train on.
 */
export function holdOut(
  count: number,
  share: number,
  { seed, phase }: { readonly seed: string; readonly phase: string },
): HoldOut {
  const heldOut = Math.max(1, Math.round(share * count));
  if (heldOut >= count) {
    throw new PeriodicEvalError({
      code: "data",
      where: "dataset",
      path: ["validationShare"],
      got: `${count} rows, of which validationShare ${share} holds out ${heldOut}`,
      expected: "at least one row to train on",
      fix: "Lower validationShare, or add rows.",
    });
  }
  const order = shuffled(
    Array.from({ length: count }, (_, row) => row),
    namedStream(seedOf(seed, phase, "hold out")),
  );
  const ascending = (rows: number[]) => rows.sort((a, b) => a - b);
  return { validation: ascending(order.slice(0, heldOut)), training: ascending(order.slice(heldOut)) };
}
