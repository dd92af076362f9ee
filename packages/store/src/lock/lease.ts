import { basename, dirname, existsSync, readFileSync, resolve } from "#platform";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { errnoOf, storeError, type FileSystem, holdFolder } from "../files/file-system.ts";
import { heldTokens, checksUntilLost, parseHolder, type LockHolder, type LockOwner } from "./lock-owner.ts";
import { readIfPresent } from "../files/read-file.ts";

/** A lock that this process holds as long as it renews it. Another process may take a lock that is not renewed. */
export interface Lease {
  /** Why this process no longer holds the lock, as far as it has noticed; null while it does. */
  readonly lost: PeriodicEvalError | null;
  release(): Promise<void>;
}

/**
 * Renews a lock that this process has taken, until it is released or lost. If this process is stopped, another one may take the lock in
 * the meantime. A loss is final. It is noticed at the next renewal, or before the next change in the folder.
 */
export function startLease(
  lockPath: string,
  holder: LockHolder,
  { fs, owner }: { readonly fs: FileSystem; readonly owner: LockOwner },
): Lease {
  const path = resolve(lockPath);
  let lost: PeriodicEvalError | null = null;
  let renewals = 0;
  let isRenewing = false;

  const compare = (text: string | null): void => {
    const current = text === null ? null : parseHolder(text);
    if (current?.token !== holder.token) lost ??= lostError(path, current);
    if (lost !== null) throw lost;
  };
  const renew = async (): Promise<void> => {
    if (isRenewing) return;
    isRenewing = true;
    const next = holderText({ ...holder, renewals: renewalsText(++renewals) });
    const isOurs = (text: string) => parseHolder(text)?.token === holder.token;
    try {
      await fs.overwrite(path, (text) => (isOurs(text) ? next : null)).catch(() => undefined);
      compare(await readIfPresent(path, fs));
    } catch {
      // A disk that fails now is tried again.
      if (lost !== null) stop();
    }
    isRenewing = false;
  };
  const { renewMilliseconds } = owner;
  const timer = renewMilliseconds === null ? null : setInterval(() => void renew(), renewMilliseconds);
  timer?.unref();
  const letGo =
    timer === null ? () => undefined : holdFolder(folderOf(path), path, () => compare(readNow(path)));
  const stop = () => clearInterval(timer ?? undefined);

  return {
    get lost() {
      return lost;
    },
    async release() {
      stop();
      letGo();
      try {
        compare(await readIfPresent(path, fs));
        await fs.remove(path);
      } catch {
        // It is lost, or the disk fails: then the next process finds that this one has ended.
      } finally {
        // Only now: another session of this process would take the file for one of a process that has ended.
        heldTokens.delete(holder.token);
      }
    },
  };
}

/**
 * Returns the text of a file, or null if there is none. Another failure, as of a network that goes away, says nothing about the file.
 *
 * @throws PeriodicEvalError `store`.
 */
function readNow(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return null;
    throw storeError(path, error);
  }
}

export const renewalsText = (count: number): string => String(count).padStart(12, "0");

export const holderText = (holder: LockHolder): string => JSON.stringify(holder);

/** @param current Who holds the lock now; null if nobody does. */
function lostError(path: string, current: LockHolder | null): PeriodicEvalError {
  const folder = folderOf(path);
  const lossOf = (got: string, expected: string, fix: string) =>
    new PeriodicEvalError({
      code: "store",
      where: !existsSync(dirname(path)) && existsSync(folder) ? dirname(path) : folder,
      got,
      expected,
      fix: `This process writes nothing more. ${fix}`,
    });
  const expected = "a folder that only this process writes to";
  if (current !== null)
    return lossOf(
      `process ${current.pid} on "${current.host}", which took over because this process had not renewed its lock for ${checksUntilLost} s`,
      expected,
      "The other process goes on with the run; once it has ended, the same command resumes.",
    );
  if (existsSync(dirname(path)))
    return lossOf(
      "no lock of this process any more: another process took over and has ended, or the lock was deleted",
      expected,
      "The same command resumes.",
    );
  return lossOf(
    "no such folder any more: it was renamed or deleted",
    "the folder in which this process began",
    "Give the folder its name back, and the same command resumes; or choose another folder.",
  );
}

/** Returns the folder that a lock protects: the lock of a run is in `periodic_eval`. */
const folderOf = (path: string): string =>
  basename(dirname(path)) === "periodic_eval" ? dirname(dirname(path)) : dirname(path);
