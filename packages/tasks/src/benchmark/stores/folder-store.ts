import { storeError, writeFileAtomic } from "@periodic-eval/core/snapshots";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { BenchmarkStore } from "./store.ts";

/** Keeps each value as a file of JSON in a folder, which is made; each is written whole. */
export function folderStore(folder: string): BenchmarkStore {
  return {
    name: folder,
    async put(name, value) {
      const path = join(folder, name);
      try {
        await mkdir(dirname(path), { recursive: true });
      } catch (error) {
        throw storeError(path, error);
      }
      await writeFileAtomic(path, `${JSON.stringify(value, null, 2)}\n`);
    },
  };
}
