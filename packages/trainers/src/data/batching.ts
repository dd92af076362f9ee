import { namedStream, seedOf } from "@periodic-eval/core/random";

export interface BatchingOptions {
  readonly batchSize: number;
  readonly seed: string;
  readonly phase: string;
}

/** Batches that are sorted by length together: enough for equal lengths, few enough to stay shuffled. */
const batchesPerMegabatch = 50;

/**
 * The batches of one epoch as row numbers, every row once; depends on nothing but its arguments. Rows are shuffled, cut
 * into megabatches, sorted by length within each and cut into batches, as transformers' `LengthGroupedSampler`; then
 * the batches are shuffled too, which it does not do: a megabatch would run from its longest rows to its shortest.
 *
 * @param lengths of the rows, in tokens
 * @param epoch 0 for the first
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

/** Fisher and Yates, in place. */
export function shuffled<T>(list: T[], random: () => number): T[] {
  for (let i = list.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [list[i], list[j]] = [list[j]!, list[i]!];
  }
  return list;
}
