import { PeriodicEvalError, type MeasureContext } from "@periodic-eval/contracts";
import { forEachConcurrently } from "../../model/concurrently.ts";

/**
 * Whether the signal was aborted because the measurement ran out of time. Training then continues and the rows measured so
 * far are kept: `measure` returns them. After any other abort `measure` throws, and the measurement is repeated on resume.
 */
export function isDeadline(signal: AbortSignal): boolean {
  return signal.aborted && PeriodicEvalError.is(signal.reason, "deadline");
}

/**
 * Measures items in batches, in order. After each batch it reports progress and checks the signal. At a deadline it returns the
 * rows of the finished batches, up to the first unfinished one.
 *
 * A model on a server gets `concurrentCalls` batches at a time, so that no replica waits for the last answer of a batch.
 *
 * @param itemsPerBatch Items per call of `measureBatch`; the engine forms its own batches by length.
 * @throws The signal's reason if it was aborted for anything but a deadline; the errors of `measureBatch`.
 */
export async function measureInBatches<I, R>(
  items: readonly I[],
  { signal, progress, concurrentCalls = 1 }: MeasureContext,
  measureBatch: (items: readonly I[]) => Promise<readonly R[]>,
  itemsPerBatch = 64,
): Promise<readonly R[]> {
  const rows: R[] = [];
  /** Finished batches behind an unfinished one, by their first item. */
  const waiting = new Map<number, readonly R[]>();
  let done = 0;
  const collect = () => {
    for (let next = waiting.get(done); next !== undefined; next = waiting.get(done)) {
      waiting.delete(done);
      rows.push(...next);
      done = Math.min(items.length, done + itemsPerBatch);
      progress(done);
    }
  };
  const starts = Array.from(
    { length: Math.ceil(items.length / itemsPerBatch) },
    (_, at) => at * itemsPerBatch,
  );
  await forEachConcurrently(starts, concurrentCalls, async (first) => {
    try {
      signal.throwIfAborted();
      waiting.set(first, await measureBatch(items.slice(first, first + itemsPerBatch)));
      collect();
    } catch (error) {
      if (!isDeadline(signal)) throw error;
    }
  });
  return rows;
}
