import { dirname, resolve } from "#platform";

/**
 * The folders whose locks this process holds, each with a check by lock that throws once the lock is lost. All copies of this module in
 * the process share them.
 */
const heldFolders = ((globalThis as { [key: symbol]: unknown })[Symbol.for("periodic-eval.folders")] ??=
  new Map<string, Map<string, () => void>>()) as Map<string, Map<string, () => void>>;

/** Makes `checkFolder` call `check` for everything in a folder, until the returned function is called. */
export function holdFolder(folder: string, lock: string, check: () => void): () => void {
  const checks = heldFolders.get(folder) ?? new Map<string, () => void>();
  heldFolders.set(folder, checks.set(lock, check));
  return () => {
    if (checks.get(lock) === check) checks.delete(lock);
    if (checks.size === 0) heldFolders.delete(folder);
  };
}

/**
 * Checks before a change of a file or folder that this process still holds the locks of the folders in which it is. `nodeFiles` does this
 * before each change; code that writes by other functions calls it. Between the check and the change, a process can still be stopped.
 *
 * @throws PeriodicEvalError `store` if another process has taken such a lock, or its folder is gone.
 */
export function checkFolder(path: string): void {
  if (heldFolders.size === 0) return;
  for (let folder = resolve(path), last = ""; folder !== last; last = folder, folder = dirname(folder))
    for (const check of heldFolders.get(folder)?.values() ?? []) check();
}
