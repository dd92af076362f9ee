import { nodeFiles, type FileSystem } from "../snapshots/storage/file-system.ts";

/** One operation of a file system, before it happens. */
export interface FileOperation {
  readonly name: keyof FileSystem | "write" | "sync" | "close";
  readonly path: string;
  /** 1 for the first operation that changes anything, and so on; reading is not counted. */
  readonly count: number;
}

/** Go on, die (this and everything after it fails, as `kill -9` would), or fail with an error code such as `ENOSPC`. */
export type Fault = "none" | "die" | { readonly errno: string };

/**
 * A file system that fails where a test says. A write that fails has written the first half, as a full disk does.
 * Reading never fails, except after death.
 */
export function faultyFiles(
  plan: (operation: FileOperation) => Fault,
  inner: FileSystem = nodeFiles,
): FileSystem {
  let count = 0;
  let isDead = false;

  async function change<T>(
    name: FileOperation["name"],
    path: string,
    act: () => Promise<T>,
    half?: () => Promise<unknown>,
  ): Promise<T> {
    refuseTheDead();
    const fault = plan({ name, path, count: ++count });
    if (fault === "none") return await act();
    await half?.();
    if (fault === "die") {
      isDead = true;
      refuseTheDead();
    }
    const { errno } = fault as { readonly errno: string };
    throw Object.assign(new Error(`${errno}: injected, ${name} '${path}'`), { code: errno });
  }

  function refuseTheDead(): void {
    if (isDead) throw new Error("the process is dead");
  }

  return {
    makeFolder: (path) => change("makeFolder", path, () => inner.makeFolder(path)),
    list(folder) {
      refuseTheDead();
      return inner.list(folder);
    },
    read(path) {
      refuseTheDead();
      return inner.read(path);
    },
    open: (path, mode) =>
      change("open", path, async () => {
        const file = await inner.open(path, mode);
        return {
          write: (content) =>
            change(
              "write",
              path,
              () => file.write(content),
              () => file.write(content.slice(0, content.length / 2)),
            ),
          sync: () => change("sync", path, () => file.sync()),
          // The system closes what a dead process held open: otherwise a test would leak it.
          close: () =>
            isDead
              ? file.close()
              : change(
                  "close",
                  path,
                  () => file.close(),
                  () => file.close(),
                ),
        };
      }),
    truncate: (path, bytes) => change("truncate", path, () => inner.truncate(path, bytes)),
    rename: (from, to) => change("rename", to, () => inner.rename(from, to)),
    link: (from, to) => change("link", to, () => inner.link(from, to)),
    remove: (path) => change("remove", path, () => inner.remove(path)),
    syncFolder: (folder) => change("syncFolder", folder, () => inner.syncFolder(folder)),
  };
}
