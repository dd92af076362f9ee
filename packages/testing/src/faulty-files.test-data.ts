import { nodeFiles, type FileSystem } from "@periodic-eval/store";

/** An operation of a file system, before it happens. */
export interface FileOperation {
  readonly name: keyof FileSystem | "write" | "sync" | "close";
  readonly path: string;
  /** 1 for the first operation that changes something, and so on. Reads do not count. */
  readonly count: number;
}

/** `"none"`: continue. `"die"`: fail this and all later operations, like `kill -9`. Or fail with a code such as `ENOSPC`. */
export type Fault = "none" | "die" | { readonly errno: string };

/**
 * Returns a file system that fails where a test plans it. A failing write writes the first half of its bytes, like a full disk.
 * Reads fail only after `"die"`.
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
    throwIfDead();
    const fault = plan({ name, path, count: ++count });
    if (fault === "none") return await act();
    await half?.();
    if (fault === "die") {
      isDead = true;
      throwIfDead();
    }
    const { errno } = fault as { readonly errno: string };
    throw Object.assign(new Error(`${errno}: injected, ${name} '${path}'`), { code: errno });
  }

  function throwIfDead(): void {
    if (isDead) throw new Error("the process is dead");
  }

  return {
    makeFolder: (path) => change("makeFolder", path, () => inner.makeFolder(path)),
    list(folder) {
      throwIfDead();
      return inner.list(folder);
    },
    read(path) {
      throwIfDead();
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
          // Closes the file of a dead process, as the system would; otherwise the test leaks it.
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
    overwrite: (path, text) => change("overwrite", path, () => inner.overwrite(path, text)),
    rename: (from, to) => change("rename", to, () => inner.rename(from, to)),
    link: (from, to) => change("link", to, () => inner.link(from, to)),
    remove: (path) => change("remove", path, () => inner.remove(path)),
    syncFolder: (folder) => change("syncFolder", folder, () => inner.syncFolder(folder)),
  };
}
