import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { PeriodicEvalError } from "../../errors.ts";
import { errnoOf, type FileReader, type FileSystem } from "./files.ts";
import { readIfPresent, storeError, temporaryBeside, writeNew, writeWhole } from "./atomic-file.ts";

const holderSchema = z.object({
  pid: z.int(),
  host: z.string(),
  /** When the process started, in the system's own words: tells a process from a later one of the same number. */
  process_start: z.string().nullable(),
  /** Names this one taking of the lock. */
  token: z.string(),
});

/** What a lock file says of the session that holds it. */
export type LockHolder = z.infer<typeof holderSchema>;

/** Who takes a lock, and how it knows whether another holder is still there. */
export interface LockOwner {
  readonly pid: number;
  readonly host: string;
  readonly processStart: string | null;
  isAlive(holder: LockHolder): boolean;
}

// Shared by all copies of this module in one process: a lock of ours with an unknown token was left by an earlier
// process of the same number (in a container every process is number 1).
const held = ((globalThis as { [key: symbol]: unknown })[Symbol.for("periodic-eval.locks")] ??=
  new Set<string>()) as Set<string>;

export const thisProcess: LockOwner = {
  pid: process.pid,
  host: hostname(),
  processStart: startOf(process.pid),
  isAlive(holder) {
    if (holder.pid === process.pid) return held.has(holder.token);
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

/** The start time of a process as Linux tells it; `"dead"` for one that ended and was not yet collected; else null. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field, the command in brackets, may itself hold spaces and brackets.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? "dead" : (fields[19] ?? null);
  } catch {
    return null;
  }
}

/** The holder that a lock file names; null where nobody holds it. A file that cannot be understood counts as stale. */
export async function readLock(path: string, fs: FileReader): Promise<LockHolder | null> {
  const text = await readIfPresent(path, fs);
  return text === null ? null : parseHolder(text);
}

function parseHolder(text: string): LockHolder | null {
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** The process that holds a lock; `isAlive` null where it is on another machine: nobody here can tell. */
export interface Writer {
  readonly pid: number;
  readonly host: string;
  readonly isAlive: boolean | null;
}

/** Who holds the lock at `path`, and whether it still runs; null where nobody does, or the file cannot be understood. */
export async function writerAt(path: string, fs: FileReader): Promise<Writer | null> {
  const holder = await readLock(path, fs).catch(() => null);
  if (holder === null) return null;
  const { pid, host } = holder;
  return { pid, host, isAlive: host === thisProcess.host ? thisProcess.isAlive(holder) : null };
}

/**
 * Takes the lock file at `path`, or throws a `store` error that names the holder. A lock of a process that is gone is
 * taken over; of a process on another machine nobody here can tell, so it is an error that says what to delete.
 * Returns the function that gives the lock back.
 */
export async function takeLock(
  path: string,
  fs: FileSystem,
  owner: LockOwner = thisProcess,
): Promise<() => Promise<void>> {
  const token = randomUUID();
  const holder: LockHolder = { pid: owner.pid, host: owner.host, process_start: owner.processStart, token };
  const text = JSON.stringify(holder);
  held.add(token); // before others can see it: two sessions of one process ask here whether a token lives
  try {
    while (!(await createUnlessThere(path, text, fs))) {
      const current = await readIfPresent(path, fs);
      if (current !== null && (await replaceStale(path, current, text, fs, owner))) break;
    }
  } catch (error) {
    held.delete(token);
    throw storeError(path, error);
  }
  return async () => {
    held.delete(token);
    const current = await readLock(path, fs).catch(() => null);
    if (current?.token === token) await fs.remove(path).catch(() => undefined);
  };
}

/** Time between two tries, in milliseconds. */
const retryEvery = 20;

/**
 * Does short work under the lock at `path`, and gives it back: for files that several processes change in turn. Waits
 * while a process of this machine holds it.
 *
 * @param options.waitSeconds default 60.
 * @throws PeriodicEvalError `store` where it is held longer, or by a process of another machine; and what `work` throws.
 */
export async function withLock<T>(
  path: string,
  work: () => Promise<T>,
  options: { readonly fs: FileSystem; readonly waitSeconds?: number },
): Promise<T> {
  const { fs, waitSeconds = 60 } = options;
  const until = performance.now() + 1000 * waitSeconds;
  const take = async (): Promise<() => Promise<void>> => {
    for (;;) {
      try {
        return await takeLock(path, fs);
      } catch (error) {
        const passes = PeriodicEvalError.is(error) && passing.has(error);
        if (!passes || performance.now() >= until) throw error;
        await sleep(retryEvery);
      }
    }
  };
  const release = await take();
  try {
    return await work();
  } finally {
    await release();
  }
}

/**
 * Replaces the lock of a dead process. Of several that try, only the one that creates the claim, a file named after the
 * dead lock's content, may touch that lock; the claim of one that died in the act is replaced by the same rule. False
 * where the lock was replaced by another meanwhile. Throws where holder or claimant live.
 */
async function replaceStale(
  path: string,
  stale: string,
  text: string,
  fs: FileSystem,
  owner: LockOwner,
): Promise<boolean> {
  const claims: string[] = [];
  for (let dead = stale, isOurs = false; !isOurs;) {
    refuseLiving(path, parseHolder(dead), owner);
    const claim = `${path}.${createHash("sha256").update(dead).digest("hex").slice(0, 16)}`;
    isOurs = await createUnlessThere(claim, text, fs);
    claims.push(claim);
    const claimant = isOurs ? "" : await readIfPresent(claim, fs);
    if (claimant === null) return false;
    dead = claimant;
  }
  const isStill = (await readIfPresent(path, fs)) === stale;
  if (isStill) await writeWhole(path, text, fs);
  for (const claim of claims) await fs.remove(claim).catch(() => undefined);
  return isStill;
}

/** Creates a file with its whole content in one step. False where the path is taken. */
async function createUnlessThere(path: string, text: string, fs: FileSystem): Promise<boolean> {
  // Written first and linked then, so that no other process ever sees a lock without its holder.
  const draft = temporaryBeside(path);
  try {
    await writeNew(draft, text, fs);
  } catch (error) {
    await fs.remove(draft).catch(() => undefined);
    throw error;
  }
  try {
    await fs.link(draft, path);
    return true;
  } catch (error) {
    const code = errnoOf(error) ?? "";
    if (code === "EEXIST" || code === "ENOENT") return false; // ENOENT: the holder's opening swept our draft away
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(code)) throw error;
    return await createWithoutLinks(path, text, fs);
  } finally {
    await fs.remove(draft).catch(() => undefined);
  }
}

/** As exclusive, but another process could read the file while it is empty. */
async function createWithoutLinks(path: string, text: string, fs: FileSystem): Promise<boolean> {
  try {
    await writeNew(path, text, fs);
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

function refuseLiving(path: string, holder: LockHolder | null, owner: LockOwner): void {
  if (holder === null) return;
  if (holder.host !== owner.host || owner.isAlive(holder)) throw heldError(path, holder, owner);
}

/** Errors that say of a lock that a process of this machine holds it: it will be given back. */
const passing = new WeakSet<PeriodicEvalError>();

function heldError(path: string, holder: LockHolder, owner: LockOwner): PeriodicEvalError {
  const elsewhere = holder.host !== owner.host;
  const error = new PeriodicEvalError({
    code: "store",
    where: path,
    got: `a lock held by process ${holder.pid}${elsewhere ? ` on "${holder.host}"` : holder.pid === owner.pid ? " (this one)" : ""}`,
    expected: "a run folder that no other session writes to",
    fix: elsewhere
      ? `If that process is gone, delete ${path}; else choose another run folder.`
      : "Wait for that session to close or end that process, or choose another run folder.",
  });
  if (!elsewhere) passing.add(error);
  return error;
}
