import { median } from "../median.ts";
import type { NamedPeer } from "../peers/named-peers.ts";

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
  /** Peak resident memory of this process and of each peer's, in bytes; null if unknown. */
  readonly peaks?: { readonly ours: number; readonly peers: Readonly<Record<string, number>> } | null;
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

/** The measured parts by name, one entry per processor: the content of docs/performance.json. */
export type Report = Readonly<Record<string, readonly MeasuredPart[]>>;

/** The processor that a part was measured on, such as `2 cores of AMD EPYC with AVX-512`. */
export const processorOf = ({ machine }: Pick<MeasuredPart, "machine">): string =>
  machine.split(", Node ")[0]!;

/** Returns the part as it was last measured on the processor of `now`. */
export const earlierOf = (report: Report, name: string, now: MeasuredPart): MeasuredPart | undefined =>
  report[name]?.find((part) => processorOf(part) === processorOf(now));

/** Adds a part to a report, in place of its earlier results on the same processor. Those of other processors stay. */
export function addedTo(report: Report, name: string, now: MeasuredPart): Report {
  const earlier = earlierOf(report, name, now);
  const parts = report[name] ?? [];
  return {
    ...report,
    [name]: earlier ? parts.map((part) => (part === earlier ? now : part)) : [...parts, now],
  };
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

/** Returns the peak resident memory of this process and of the peers' so far; null without a peer, or if the system does not report it. */
export function peaksOf(
  peers: readonly Pick<NamedPeer, "name" | "peakBytes">[],
): NonNullable<Results["peaks"]> | null {
  const theirs = peers.map(({ name, peakBytes }) => [name, peakBytes()] as const);
  const known = theirs.filter((pair): pair is [string, number] => pair[1] !== null);
  if (known.length === 0) return null;
  return { ours: process.resourceUsage().maxRSS * 1024, peers: Object.fromEntries(known) };
}
