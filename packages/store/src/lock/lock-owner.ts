import { hostname, process, readFileSync, readlinkSync, sleep } from "#platform";
import * as z from "zod";
import { isRunning } from "../process/process.ts";

const holderSchema = z.object({
  pid: z.int(),
  host: z.string(),
  /** When the process started, as the system reports it: distinguishes a process from a later one with the same id. */
  process_start: z.string().nullable(),
  /** Where `pid` names this process; null if the system does not say. */
  system: z.string().nullable(),
  /** Identifies this acquisition of the lock. */
  token: z.string(),
  /** How often the holder has renewed the lock. Its width is constant, so that it can be overwritten in place. */
  renewals: z.string(),
});

/** The content of a lock file: the process that holds it. */
export type LockHolder = z.infer<typeof holderSchema>;

/** Returns the holder that the text of a lock file names; null if it is not readable as one. */
export function parseHolder(text: string): LockHolder | null {
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** A process that takes locks, and its way to find out whether another holder still runs. */
export interface LockOwner {
  readonly pid: number;
  readonly host: string;
  readonly processStart: string | null;
  readonly system: string | null;
  /** Milliseconds between two renewals of a lock; null for none, where every process sees whether another one runs. */
  readonly renewMilliseconds: number | null;
  /** Waits until the next check at a lock that another process may hold. */
  nextCheck(): Promise<void>;
  /** `unclear`: the holder cannot be seen from here, or it is stopped. Only its renewals then show whether it goes on. */
  stateOf(holder: LockHolder): "running" | "ended" | "unclear";
}

/** Seconds between two renewals. */
const renewSeconds = 5;

/** How many checks in a row, a second apart, a lock must stay the same until its holder has lost it. */
export const checksUntilLost = 60;

/**
 * Tokens of the locks that this process holds, shared by all copies of this module in it. A lock with this process's id and an
 * unknown token was left by an earlier process with the same id (in a container every process has the id 1).
 */
export const heldTokens = ((globalThis as { [key: symbol]: unknown })[Symbol.for("periodic-eval.locks")] ??=
  new Set<string>()) as Set<string>;

/**
 * Returns what tells apart the systems in which a process id means another process: the boot and the namespace of ids, which
 * differs between containers. Elsewhere than on Linux, the name of the host. Null if `/proc` is that of another namespace (`unshare`
 * without `--mount-proc`): its entries are about other processes.
 */
function thisSystem(): string | null {
  if (process.platform !== "linux") return hostname();
  try {
    if (readlinkSync("/proc/self") !== String(process.pid)) return null;
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot}-${/\d+/.exec(readlinkSync("/proc/self/ns/pid"))![0]}`;
  } catch {
    return null;
  }
}

export const thisProcess: LockOwner = {
  pid: process.pid,
  host: hostname(),
  processStart: statusOf(process.pid).start,
  system: thisSystem(),
  renewMilliseconds: process.platform === undefined ? null : 1000 * renewSeconds, // undefined: a browser
  nextCheck: () => sleep(1000),
  stateOf(holder) {
    if (heldTokens.has(holder.token)) return "running";
    if (this.system === null || holder.system !== this.system) return "unclear";
    if (holder.pid === this.pid) return "ended";
    return stateOfProcess(holder.pid, holder.process_start);
  },
};

/**
 * Returns the state of a process of this system.
 *
 * @param processStart When it started; null if unknown.
 */
export function stateOfProcess(pid: number, processStart: string | null): "running" | "ended" | "unclear" {
  if (!isRunning(pid)) return "ended";
  const { state, start } = statusOf(pid);
  const isAnother = start !== null && processStart !== null && start !== processStart;
  if (isAnother || state === "Z" || state === "X") return "ended";
  return state === "T" ? "unclear" : "running";
}

/** Returns the state and the start time of a process on Linux; null if the system does not report them. */
function statusOf(pid: number): { readonly state: string | null; readonly start: string | null } {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field, the command in parentheses, may itself contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? null, start: fields[19] ?? null };
  } catch {
    return { state: null, start: null };
  }
}
