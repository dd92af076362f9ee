import { basename, createHash, dirname, process, randomUUID, resolve, sleep } from "#platform";
import { type Writer, PeriodicEvalError } from "@periodic-eval/contracts";
import { removeTemporaryFiles, temporaryPath, writeFileAtomic, writeNew } from "../files/atomic-file.ts";
import { errnoOf, storeError, type FileReader, type FileSystem } from "../files/file-system.ts";
import { holderText, renewalsText, startLease, type Lease } from "./lease.ts";
import {
  heldTokens,
  checksUntilLost,
  parseHolder,
  thisProcess,
  type LockHolder,
  type LockOwner,
} from "./lock-owner.ts";
import { readIfPresent } from "../files/read-file.ts";

export interface TakeOptions {
  /** For tests: the process that takes the lock. */
  readonly owner?: LockOwner;
  /** Called if the lock must be watched before it can be taken. Default: `process.emitWarning`. */
  readonly onWait?: (message: string) => void;
}

/**
 * Takes the lock at `path`. Replaces the lock of a process that has ended. Whether a process that cannot be seen from here (in
 * another container, on another machine) or that is stopped goes on, is decided by its renewals: its lock is replaced after
 * `checksUntilLost` checks, a second apart, that found no new one. No clock is read, so a pause of this process counts as one check.
 *
 * @throws PeriodicEvalError `store` that names the holder, if the lock is held.
 */
export async function takeLock(path: string, fs: FileSystem, options: TakeOptions = {}): Promise<Lease> {
  const between = keptLocks.get(resolve(path));
  if (between?.isUsed === false) {
    between.isUsed = true;
    const { lease } = between;
    return {
      get lost() {
        return lease.lost;
      },
      release: async () => void Object.assign(between, { isUsed: false }),
    };
  }
  const { owner = thisProcess, onWait = emitWarning } = options;
  const holder: LockHolder = {
    pid: owner.pid,
    host: owner.host,
    process_start: owner.processStart,
    system: owner.system,
    token: randomUUID(),
    renewals: renewalsText(0),
  };
  heldTokens.add(holder.token); // before the file exists, because other sessions of this process check their tokens against it
  try {
    const taking: Taking = { fs, owner, text: holderText(holder), onWait };
    while (!(await createIfAbsent(path, taking.text, fs))) if (await replaceLost(path, taking)) break;
    await removeTemporaryFiles(dirname(path), (file) => file === basename(path), fs);
  } catch (error) {
    heldTokens.delete(holder.token);
    throw storeError(path, error);
  }
  return startLease(path, holder, { fs, owner });
}

const emitWarning = (message: string): void => process.emitWarning(message, "PeriodicEvalWarning");

/**
 * Takes the lock at `path` for several sessions of this process, one after the other: `takeLock` then lends it. Between two of them
 * no other process can take it. Returns the function that
 * releases it.
 */
export async function keepLock(
  path: string,
  fs: FileSystem,
  options: TakeOptions = {},
): Promise<() => Promise<void>> {
  const lease = await takeLock(path, fs, options);
  keptLocks.set(resolve(path), { isUsed: false, lease });
  return async () => {
    keptLocks.delete(resolve(path));
    await lease.release();
  };
}

const retryMilliseconds = 20;

/**
 * Runs short work while holding the lock at `path`, for files that several processes change in turn. Waits while another
 * process holds the lock.
 *
 * @param options.waitSeconds Longest wait for a process that goes on. Default: 60.
 * @throws PeriodicEvalError `store` if the lock is held longer. Errors of `work` pass through.
 */
export async function withLock<T>(
  path: string,
  work: () => Promise<T>,
  options: { readonly fs: FileSystem; readonly waitSeconds?: number },
): Promise<T> {
  const { fs, waitSeconds = 60 } = options;
  const until = performance.now() + 1000 * waitSeconds;
  const take = async (): Promise<Lease> => {
    for (;;) {
      try {
        return await takeLock(path, fs);
      } catch (error) {
        const isHeld = PeriodicEvalError.is(error) && heldErrors.has(error);
        if (!isHeld || performance.now() >= until) throw error;
        await sleep(retryMilliseconds);
      }
    }
  };
  const lease = await take();
  try {
    return await work();
  } finally {
    await lease.release();
  }
}

/** An attempt to take a lock. */
interface Taking extends Required<TakeOptions> {
  readonly fs: FileSystem;
  /** The content of the lock file once it is taken. */
  readonly text: string;
}

/**
 * Replaces a lock that its holder has lost. Among processes that try it at the same time, only the one that creates the claim, a
 * file named after the token of the lost lock, may touch that lock. A claim whose process died is replaced by the same rule.
 *
 * @returns False if the lock has changed hands in the meantime.
 * @throws PeriodicEvalError `store` if the holder or the process with the claim goes on.
 */
async function replaceLost(path: string, taking: Taking): Promise<boolean> {
  const { text, fs } = taking;
  const claims: string[] = [];
  let lost = await waitForLoss(path, taking);
  const stale = lost;
  for (let isOurs = false; !isOurs;) {
    if (lost === null) return false;
    const name = parseHolder(lost)?.token ?? lost;
    const claim = `${path}.${createHash("sha256").update(name).digest("hex").slice(0, 16)}`;
    isOurs = await createIfAbsent(claim, text, fs);
    claims.push(claim);
    if (!isOurs) lost = await waitForLoss(claim, taking);
  }
  const isStill = (await readIfPresent(path, fs)) === stale;
  if (isStill) await writeFileAtomic(path, text, fs);
  for (const claim of claims) await fs.remove(claim).catch(() => undefined);
  return isStill;
}

/**
 * Returns the content of a lock or claim once its holder has lost it; null if the file has changed hands or is gone.
 *
 * @throws PeriodicEvalError `store` if the holder goes on.
 */
async function waitForLoss(path: string, { fs, owner, onWait }: Taking): Promise<string | null> {
  const seen = await readIfPresent(path, fs);
  if (seen === null) return null;
  const holder = parseHolder(seen);
  const state = holder === null ? "unclear" : owner.stateOf(holder);
  if (state === "ended") return seen;
  if (state === "running") throw heldError(path, holder!, owner);
  for (let check = 1; check <= checksUntilLost; check++) {
    await owner.nextCheck();
    const text = await readIfPresent(path, fs);
    const current = text === null ? null : parseHolder(text);
    if (text === null || current?.token !== holder?.token) return null;
    if (current !== null && owner.stateOf(current) === "ended") return text;
    if (text !== seen) {
      if (current === null) return null;
      throw heldError(path, current, owner);
    }
    if (check === 1) onWait(waitText(path, holder, owner));
  }
  return seen;
}

function waitText(path: string, holder: LockHolder | null, owner: LockOwner): string {
  const who = holder === null ? "an unknown process" : processText(holder, owner);
  const why =
    holder !== null && isOfSystem(holder, owner)
      ? "that process is stopped"
      : "it cannot be seen from here whether that process still runs";
  return `waiting up to ${checksUntilLost} s for ${path}, a lock of ${who}: ${why}, and a process that runs renews its lock`;
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

const isOfSystem = (holder: LockHolder, { system }: LockOwner): boolean =>
  system !== null && holder.system === system;

/** Errors about a lock that a process holds which goes on, and will release it. */
const heldErrors = new WeakSet<PeriodicEvalError>();

function heldError(path: string, holder: LockHolder, owner: LockOwner): PeriodicEvalError {
  const error = new PeriodicEvalError({
    code: "store",
    where: path,
    got: `a lock held by ${processText(holder, owner)}`,
    expected: "a run folder that no other session writes to",
    fix: "Wait until that session closes, end that process, or choose another run folder.",
  });
  heldErrors.add(error);
  return error;
}

function processText({ pid, host, token }: LockHolder, owner: LockOwner): string {
  if (heldTokens.has(token)) return `process ${pid} (this one)`;
  return host === owner.host ? `process ${pid}` : `process ${pid} on "${host}"`;
}

interface KeptLock {
  readonly lease: Lease;
  isUsed: boolean;
}

/** The locks that this process keeps between sessions, by path, shared by all copies of this module in it. */
const keptLocks = ((globalThis as { [key: symbol]: unknown })[Symbol.for("periodic-eval.kept-locks")] ??=
  new Map<string, KeptLock>()) as Map<string, KeptLock>;

/** Returns the process that holds the lock at `path`; null if none does or the lock file is not readable. */
export async function readWriter(path: string, fs: FileReader): Promise<Writer | null> {
  const text = await readIfPresent(path, fs).catch(() => null);
  const holder = text === null ? null : parseHolder(text);
  if (holder === null) return null;
  const { pid, host } = holder;
  const state = thisProcess.stateOf(holder);
  if (state !== "unclear") return { pid, host, isAlive: state === "running" };
  // A stopped process exists, and may go on.
  return { pid, host, isAlive: isRenewed(holder) ?? (isOfSystem(holder, thisProcess) ? true : null) };
}

/** The last renewal of each lock that this process has seen, by token, and when it first saw it, in its own milliseconds. */
const renewalsSeen = new Map<
  string,
  { readonly renewals: string; readonly at: number; readonly isFirst: boolean }
>();

/** Whether the holder of a lock goes on, by all checks of this process; null if they do not show it yet. */
function isRenewed({ token, renewals }: LockHolder): boolean | null {
  const now = performance.now();
  const before = renewalsSeen.get(token);
  const last = before?.renewals === renewals ? before : { renewals, at: now, isFirst: before === undefined };
  renewalsSeen.set(token, last);
  if (now - last.at > 1000 * checksUntilLost) return false;
  return last.isFirst ? null : true;
}
