import { dirname, join } from "node:path";
import { errorMessage } from "@periodic-eval/contracts/options";
import type { CallOptions, Json } from "@periodic-eval/core";
import { storeError, writeFileAtomic, nodeFiles, abortable, startTimeout } from "@periodic-eval/store";

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

/** A value that a store failed to take. */
export interface StoreFailure {
  readonly store: string;
  readonly name: string;
  readonly reason: string;
}

export interface Uploads {
  /** Whether there is no store. */
  readonly isEmpty: boolean;
  /**
   * Puts a value into every store, in the background. Each store gets its values one after the other. A promise of null puts
   * nothing; one that rejects is a failure of each store.
   */
  put(name: string, value: Json | Promise<Json>, onFailure: (failure: StoreFailure) => void): void;
  /** Waits at most `settleSeconds` for all values; unfinished ones then fail. */
  settle(): Promise<void>;
  readonly failures: readonly StoreFailure[];
}

/** The longest wait of `settle`, so that a finished run does not hang on a server. */
const settleSeconds = 30;

/** Returns background uploads: they neither block training nor throw, and a slow store does not delay another. */
export function uploads(stores: readonly BenchmarkStore[]): Uploads {
  const failures: StoreFailure[] = [];
  let closing = new AbortController();
  const queues = stores.map((store) => ({ store, last: Promise.resolve() }));

  return {
    failures,
    isEmpty: stores.length === 0,
    put(name, value, onFailure) {
      for (const queue of queues) {
        const upload = async () => {
          const { signal } = closing;
          signal.throwIfAborted();
          const put = async () => {
            const known = await value;
            if (known !== null) await queue.store.put(name, known, { signal });
          };
          await abortable(signal, put());
        };
        queue.last = queue.last.then(upload).catch((error: unknown) => {
          const failure = { store: queue.store.name, name, reason: reasonOf(error) };
          failures.push(failure);
          onFailure(failure);
        });
      }
    },
    async settle() {
      const abort = () => closing.abort(new Error(`timed out after ${settleSeconds} s`));
      const stopTimeout = startTimeout(settleSeconds, abort);
      try {
        await Promise.all(queues.map(({ last }) => last));
      } finally {
        stopTimeout();
        closing = new AbortController();
      }
    },
  };
}

/** Returns an error's message, with its cause: the operating system's message about a failed connection. */
export function reasonOf(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? `${errorMessage(error)} (${errorMessage(cause)})` : errorMessage(error);
}
