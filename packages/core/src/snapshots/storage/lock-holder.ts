import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { z } from "zod";
import type { Writer } from "../../contracts/run-record.ts";
import { errnoOf, type FileReader } from "./file-system.ts";
import { readIfPresent } from "./read-file.ts";

const holderSchema = z.object({
  pid: z.int(),
  host: z.string(),
  /** When the process started, as the system reports it: distinguishes a process from a later one with the same id. */
  process_start: z.string().nullable(),
  /** Identifies this acquisition of the lock. */
  token: z.string(),
});

/** The content of a lock file: the process that holds it. */
export type LockHolder = z.infer<typeof holderSchema>;

/** A process that takes locks, and its way to find out whether another holder still runs. */
export interface LockOwner {
  readonly pid: number;
  readonly host: string;
  readonly processStart: string | null;
  isAlive(holder: LockHolder): boolean;
}

/**
 * Tokens of the locks that this process holds, shared by all copies of this module in it. A lock with this process's id and an
 * unknown token was left by an earlier process with the same id (in a container every process has the id 1).
 */
export const heldTokens = ((globalThis as { [key: symbol]: unknown })[Symbol.for("periodic-eval.locks")] ??=
  new Set<string>()) as Set<string>;

export const thisProcess: LockOwner = {
  pid: process.pid,
  host: hostname(),
  processStart: startOf(process.pid),
  isAlive(holder) {
    if (holder.pid === process.pid) return heldTokens.has(holder.token);
    try {
      process.kill(holder.pid, 0);
    } catch (error) {
      return errnoOf(error) === "EPERM";
    }
    const start = startOf(holder.pid);
    return (
      start !== "dead" && (start === null || holder.process_start === null || start === holder.process_start)
    );
  },
};

/** Returns the start time of a process on Linux; `"dead"` for a zombie; null if the system does not report it. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field, the command in parentheses, may itself contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? "dead" : (fields[19] ?? null);
  } catch {
    return null;
  }
}

/** Returns the holder that a lock file names; null if there is no lock file or it is not readable as one. */
export async function readLock(path: string, fs: FileReader): Promise<LockHolder | null> {
  const text = await readIfPresent(path, fs);
  return text === null ? null : parseHolder(text);
}

export function parseHolder(text: string): LockHolder | null {
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Returns the process that holds the lock at `path`; null if none does or the lock file is not readable. */
export async function readWriter(path: string, fs: FileReader): Promise<Writer | null> {
  const holder = await readLock(path, fs).catch(() => null);
  if (holder === null) return null;
  const { pid, host } = holder;
  return { pid, host, isAlive: host === thisProcess.host ? thisProcess.isAlive(holder) : null };
}
