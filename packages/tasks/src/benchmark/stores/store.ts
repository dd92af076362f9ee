import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { storeError, writeFileAtomic } from "@periodic-eval/core/snapshots";
import type { CallOptions, Json } from "@periodic-eval/core";

/** Where results are put besides the run's folder. */
export interface BenchmarkStore {
  /** As warnings name it; nothing secret. */
  readonly name: string;
  /**
   * Keeps a value under a name (`arithmetic/run-1/train/arithmetic_step_100.json`: letters, digits, `_`, `-`, `.` and
   * slashes), in place of what it had. What it throws is recorded, and stops nothing.
   */
  put(name: string, value: Json, options: Pick<CallOptions, "signal">): Promise<void>;
}

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
