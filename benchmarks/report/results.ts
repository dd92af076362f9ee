import { median } from "../median.ts";
import type { Peer } from "../peers/peer.ts";

/** The same work by this library and by a peer, measured in turns. */
export interface Comparison {
  /** The work, such as `batch 16, greedy`. */
  readonly name: string;
  /** What the numbers are. Less is better in both. */
  readonly unit: "seconds" | "bytes";
  /** `speed`: the peer's number over ours, more is better. `share`: ours over the peer's, less is better. */
  readonly ratio: "speed" | "share";
  /** What it is compared with. */
  readonly peer: string;
  /** One number per repeat, in the order of the repeats. */
  readonly ours: readonly number[];
  readonly peers: readonly number[];
}

/** The results of one run of a benchmark. */
export interface Results {
  /** The processor or GPU, and the versions of both sides. */
  readonly machine: string;
  readonly comparisons: readonly Comparison[];
  /** The highest resident sizes of both processes, in bytes; null if unknown. */
  readonly peaks?: { readonly ours: number; readonly peer: number } | null;
  /** Sentences for the reader of the report. */
  readonly notes?: readonly string[];
}

/** A median with the least and the greatest value. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly greatest: number;
}

/** Set in a process whose parent takes its results. tsx opens a channel to every process, so the channel alone says nothing. */
export const resultsVariable = "PERIODIC_EVAL_BENCH_RESULTS";

/** Sends the results to `npm run bench report` or to another benchmark, if it started this process. */
export function sendResults(results: Results): void {
  if (process.env[resultsVariable] !== undefined) process.send!(results);
}

export const spreadOf = (numbers: readonly number[]): Spread => ({
  median: median(numbers),
  least: Math.min(...numbers),
  greatest: Math.max(...numbers),
});

/** Returns the ratio of the medians, and the range of the ratios of the repeats. */
export function ratioOf({ ratio: kind, ours, peers }: Comparison): Spread {
  const ratio = (mine: number, theirs: number) => (kind === "speed" ? theirs / mine : mine / theirs);
  const { least, greatest } = spreadOf(ours.map((mine, repeat) => ratio(mine, peers[repeat]!)));
  return { median: ratio(median(ours), median(peers)), least, greatest };
}

/** Returns the highest resident sizes of this process and of the peer's so far; null if the system does not report them. */
export function peaksOf(peer: Peer | null): NonNullable<Results["peaks"]> | null {
  const theirs = peer?.peakBytes() ?? null;
  return theirs === null ? null : { ours: process.resourceUsage().maxRSS * 1024, peer: theirs };
}
