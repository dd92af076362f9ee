import { createHash, hostname, process, randomUUID, readFileSync, sleep } from "#platform";
import * as z from "zod";
import type { Writer } from "../../contracts/run-record.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { isRunning } from "../../internal/is-running.ts";
import { temporaryPath, writeFileAtomic, writeNew } from "./atomic-file.ts";
import { errnoOf, storeError, type FileReader, type FileSystem } from "./file-system.ts";
import { readIfPresent } from "./read-file.ts";

/**
 * Takes the lock at `path` and returns the function that releases it. Replaces the lock of a process that has ended. A process
 * on another machine cannot be checked from here, so its lock is an error that names the file to delete.
 *
 * @throws PeriodicEvalError `store` that names the holder, if the lock is held.
 */
export async function takeLock(
  path: string,
  fs: FileSystem,
  owner: LockOwner = thisProcess,
): Promise<() => Promise<void>> {
  const between = keptLocks.get(path);
  if (between?.isUsed === false) {
    between.isUsed = true;
    return async () => void Object.assign(between, { isUsed: false, wasKilled: false });
  }
  const token = randomUUID();
  const holder: LockHolder = { pid: owner.pid, host: owner.host, process_start: owner.processStart, token };
  const text = JSON.stringify(holder);
  heldTokens.add(token); // before the file exists, because other sessions of this process check their tokens against it
  try {
    while (!(await createIfAbsent(path, text, fs))) {
      const current = await readIfPresent(path, fs);
      if (current !== null && (await replaceStale(path, current, text, fs, owner))) break;
    }
  } catch (error) {
    heldTokens.delete(token);
    throw storeError(path, error);
  }
  return async () => {
    heldTokens.delete(token);
    const current = await readLock(path, fs).catch(() => null);
    if (current?.token === token) await fs.remove(path).catch(() => undefined);
  };
}

/**
 * Takes the lock at `path` for several sessions of this process, one after the other: `takeLock` then lends it. Between two of them
 * no other process can take it. Returns the function that releases it.
 */
export async function keepLock(path: string, fs: FileSystem): Promise<() => Promise<void>> {
  const wasKilled = await isLeftByKilled(path, fs);
  const release = await takeLock(path, fs);
  keptLocks.set(path, { isUsed: false, wasKilled });
  return async () => {
    keptLocks.delete(path);
    await release();
  };
}

/** Whether a killed session left a lock at `path`, before this process takes it. */
export async function isLeftByKilled(path: string, fs: FileReader): Promise<boolean> {
  return keptLocks.get(path)?.wasKilled ?? (await readIfPresent(path, fs)) !== null;
}

const retryMilliseconds = 20;

/**
 * Runs short work while holding the lock at `path`, for files that several processes change in turn. Waits while another
 * process of this machine holds the lock.
 *
 * @param options.waitSeconds Longest wait. Default: 60.
 * @throws PeriodicEvalError `store` if the lock is held longer, or by a process of another machine. Errors of `work` pass
 *   through.
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
        const isTemporary = PeriodicEvalError.is(error) && temporaryErrors.has(error);
        if (!isTemporary || performance.now() >= until) throw error;
        await sleep(retryMilliseconds);
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
 * Replaces the lock of a dead process. Among processes that try it at the same time, only the one that creates the claim, a
 * file named after the content of the dead lock, may touch that lock. A claim whose process died is replaced by the same rule.
 *
 * @returns False if another process has replaced the lock in the meantime.
 * @throws PeriodicEvalError `store` if the holder or the process with the claim is alive.
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
    throwIfAlive(path, parseHolder(dead), owner);
    const claim = `${path}.${createHash("sha256").update(dead).digest("hex").slice(0, 16)}`;
    isOurs = await createIfAbsent(claim, text, fs);
    claims.push(claim);
    const claimant = isOurs ? "" : await readIfPresent(claim, fs);
    if (claimant === null) return false;
    dead = claimant;
  }
  const isStill = (await readIfPresent(path, fs)) === stale;
  if (isStill) await writeFileAtomic(path, text, fs);
  for (const claim of claims) await fs.remove(claim).catch(() => undefined);
  return isStill;
}

/** Creates a file with all of its content in one step. Returns false if the path exists. */
async function createIfAbsent(path: string, text: string, fs: FileSystem): Promise<boolean> {
  // Writes a draft and links it, so that no other process sees a lock file without its holder.
  const draft = temporaryPath(path);
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
    if (code === "EEXIST" || code === "ENOENT") return false; // ENOENT: the holder removed this draft when it opened the store
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(code)) throw error;
    return await createWithoutLinks(path, text, fs);
  } finally {
    await fs.remove(draft).catch(() => undefined);
  }
}

/** Creates the file as exclusively, but another process could read it while it is empty. */
async function createWithoutLinks(path: string, text: string, fs: FileSystem): Promise<boolean> {
  try {
    await writeNew(path, text, fs);
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

function throwIfAlive(path: string, holder: LockHolder | null, owner: LockOwner): void {
  if (holder === null) return;
  if (holder.host !== owner.host || owner.isAlive(holder)) throw heldError(path, holder, owner);
}

/** Errors about a lock that a live process of this machine holds, and will release. */
const temporaryErrors = new WeakSet<PeriodicEvalError>();

function heldError(path: string, holder: LockHolder, owner: LockOwner): PeriodicEvalError {
  const elsewhere = holder.host !== owner.host;
  const error = new PeriodicEvalError({
    code: "store",
    where: path,
    got: `a lock held by process ${holder.pid}${elsewhere ? ` on "${holder.host}"` : holder.pid === owner.pid ? " (this one)" : ""}`,
    expected: "a run folder that no other session writes to",
    fix: elsewhere
      ? `If that process has ended, delete ${path}. Otherwise choose another run folder.`
      : "Wait until that session closes, end that process, or choose another run folder.",
  });
  if (!elsewhere) temporaryErrors.add(error);
  return error;
}

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
const heldTokens = ((globalThis as { [key: symbol]: unknown })[Symbol.for("periodic-eval.locks")] ??=
  new Set<string>()) as Set<string>;

interface KeptLock {
  isUsed: boolean;
  /** Whether a killed process had left it, until a session has repaired the run. */
  wasKilled: boolean;
}

/** The locks that this process keeps between sessions, by path, shared by all copies of this module in it. */
const keptLocks = ((globalThis as { [key: symbol]: unknown })[Symbol.for("periodic-eval.kept-locks")] ??=
  new Map<string, KeptLock>()) as Map<string, KeptLock>;

export const thisProcess: LockOwner = {
  pid: process.pid,
  host: hostname(),
  processStart: startOf(process.pid),
  isAlive(holder) {
    if (holder.pid === process.pid) return heldTokens.has(holder.token);
    if (!isRunning(holder.pid)) return false;
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
async function readLock(path: string, fs: FileReader): Promise<LockHolder | null> {
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

/** Returns the process that holds the lock at `path`; null if none does or the lock file is not readable. */
export async function readWriter(path: string, fs: FileReader): Promise<Writer | null> {
  const holder = await readLock(path, fs).catch(() => null);
  if (holder === null) return null;
  const { pid, host } = holder;
  return { pid, host, isAlive: host === thisProcess.host ? thisProcess.isAlive(holder) : null };
}
