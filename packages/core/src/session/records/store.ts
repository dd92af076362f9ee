import type { Layout, SnapshotStore } from "../../contracts/snapshot.ts";

/**
 * Returns the given store, or one that writes files into the given folder. The file store is loaded when it is first used, so
 * that the package's root runs outside Node.
 */
export function resolveStore(run: string | SnapshotStore, layout: Layout = "nested"): SnapshotStore {
  if (typeof run !== "string") return run;
  let loading: Promise<SnapshotStore> | null = null;
  const files = () =>
    (loading ??= import("../../snapshots/storage/file-store.ts").then(({ fileStore }) =>
      fileStore(run, { layout }),
    ));
  return {
    open: async () => (await files()).open?.(),
    put: async (snapshot, rows) => (await files()).put(snapshot, rows),
    get: async (key) => (await files()).get(key),
    rows: async (key) => (await files()).rows(key),
    list: async () => (await files()).list(),
    supersede: async (key, why) => (await files()).supersede(key, why),
    close: async () => (await loading)?.close?.(),
  };
}
