import type { Json } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import type { BenchmarkStore } from "./store.ts";

/** A value that a store did not take. */
export interface StoreFailure {
  readonly store: string;
  readonly name: string;
  readonly reason: string;
}

export interface Uploads {
  /** Puts a value into every store, in the background, one after the other. */
  put(name: string, value: Json, told: (failure: StoreFailure) => void): void;
  /** Waits for what was put, for so long at most; what is not done then has failed. */
  settle(): Promise<void>;
  readonly failures: readonly StoreFailure[];
}

/** Longest wait of `settle`: a loop that is done does not hang on a server. */
const settleSeconds = 30;

/** Nobody waits for these while training goes on, and none of them throws. A slow store keeps no other waiting. */
export function uploads(stores: readonly BenchmarkStore[]): Uploads {
  const failures: StoreFailure[] = [];
  let closing = new AbortController();
  const queues = stores.map((store) => ({ store, last: Promise.resolve() }));

  async function putInto(store: BenchmarkStore, name: string, value: Json): Promise<StoreFailure | null> {
    try {
      await unlessAborted(closing.signal, (signal) => store.put(name, value, { signal }));
      return null;
    } catch (error) {
      const failure = { store: store.name, name, reason: reasonOf(error) };
      failures.push(failure);
      return failure;
    }
  }

  return {
    failures,
    put(name, value, told) {
      for (const queue of queues)
        queue.last = queue.last.then(async () => {
          const failure = await putInto(queue.store, name, value);
          if (failure !== null) told(failure);
        });
    },
    async settle() {
      const late = () => closing.abort(new Error(`time was up after ${settleSeconds} s`));
      const timer = setTimeout(late, 1000 * settleSeconds);
      try {
        await Promise.all(queues.map(({ last }) => last));
      } finally {
        clearTimeout(timer);
        closing = new AbortController();
      }
    },
  };
}

/** Rejects with the signal's reason as soon as it is aborted, whether the work listens or not. */
async function unlessAborted(
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  signal.throwIfAborted();
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => (onAbort = () => reject(signal.reason as Error)));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([work(signal), aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** With what the operating system said of a connection that failed. */
function reasonOf(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? `${errorMessage(error)} (${errorMessage(cause)})` : errorMessage(error);
}
