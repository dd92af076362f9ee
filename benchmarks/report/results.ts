import { median } from "../median.ts";
import type { Peer } from "../peers/peer.ts";

/** The same work by this library and by a peer, which take turns. */
export interface Comparison {
  /** The work, such as `batch 16, greedy`. */
  readonly name: string;
  /** The unit of `ours` and `peers`. Less is better. */
  readonly unit: "seconds" | "bytes";
  /** `speed`: the peer's number over ours, more is better. `share`: ours over the peer's, less is better. */
  readonly ratio: "speed" | "share";
  /** The name of the other program. */
  readonly peer: string;
  /** One number per repeat, in the order of the repeats. */
  readonly ours: readonly number[];
  readonly peers: readonly number[];
}

/** The results of one run of a benchmark. */
export interface Results {
  /** The CPU or GPU, and the versions of both sides. */
  readonly machine: string;
  readonly comparisons: readonly Comparison[];
  /** Peak resident memory of both processes, in bytes; null if unknown. */
  readonly peaks?: { readonly ours: number; readonly peer: number } | null;
  /** Sentences for the reader of the report. */
  readonly notes?: readonly string[];
}

/** A part of the report: the results of its benchmark, and how they were measured. */
export interface MeasuredPart extends Results {
  /** YYYY-MM-DD, in UTC. */
  readonly measured: string;
  /** The load average when the report began: how many processes wanted a core. */
  readonly load: number;
  /** The number of cores that this process may use. */
  readonly cores: number;
  /** Arguments after those of the part. */
  readonly extraArgs?: readonly string[];
}

/** Above this load average per core, other programs take much of the machine. */
const busyLoad = 0.5;

/** Whether other work on the machine may have changed the ratio of times. */
export const isRough = ({ load, cores, comparisons }: MeasuredPart): boolean =>
  load / cores > busyLoad && comparisons.some(({ unit }) => unit === "seconds");

/** A median with the least and the greatest value. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly greatest: number;
}

/** Set in a process whose parent receives its results. A channel to the parent proves nothing: tsx opens one to every process. */
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

/** Returns the peak resident memory of this process and of the peer's so far; null without a peer, or if the system does not report it. */
export function peaksOf(peer: Peer | null): NonNullable<Results["peaks"]> | null {
  const theirs = peer?.peakBytes() ?? null;
  return theirs === null ? null : { ours: process.resourceUsage().maxRSS * 1024, peer: theirs };
}
