import { dirname, join } from "node:path";
import { storeError, writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import type { CallOptions, Json } from "@periodic-eval/core";

/** A destination of results besides the run's folder. */
export interface BenchmarkStore {
  /** The name in warnings; must not contain secrets. */
  readonly name: string;
  /**
   * Stores a value under a name (`arithmetic/run-1/train/arithmetic_step_100.json`: letters, digits, `_`, `-`, `.` and slashes), and
   * replaces an earlier value. Errors are recorded and stop nothing.
   */
  put(name: string, value: Json, options: Pick<CallOptions, "signal">): Promise<void>;
}

/** Returns a store that writes each value atomically as a JSON file in a folder, and creates the folder. */
export function folderStore(folder: string): BenchmarkStore {
  return {
    name: folder,
    async put(name, value) {
      const path = join(folder, name);
      try {
        await nodeFiles.makeFolder(dirname(path));
      } catch (error) {
        throw storeError(path, error);
      }
      await writeFileAtomic(path, `${JSON.stringify(value, null, 2)}\n`);
    },
  };
}
