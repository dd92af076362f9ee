import { PeriodicEvalError } from "../../errors.ts";
import type { MeasureContext } from "../../contracts/evaluation.ts";

/**
 * Whether the signal was aborted because the measurement ran out of time. Training then continues and the rows measured so
 * far are kept: `measure` returns them. After any other abort `measure` throws, and the measurement is repeated on resume.
 */
export function isDeadline(signal: AbortSignal): boolean {
  return signal.aborted && PeriodicEvalError.is(signal.reason, "deadline");
}

/**
 * Measures items in batches, in order. After each batch it reports progress and checks the signal. At a deadline it returns the
 * rows of the finished batches.
 *
 * @param itemsPerBatch Items per call of `measureBatch`; the engine forms its own batches by length.
 * @throws The signal's reason if it was aborted for anything but a deadline; the errors of `measureBatch`.
 */
export async function measureInBatches<I, R>(
  items: readonly I[],
  { signal, progress }: MeasureContext,
  measureBatch: (items: readonly I[]) => Promise<readonly R[]>,
  itemsPerBatch = 64,
): Promise<readonly R[]> {
  const rows: R[] = [];
  for (let done = 0; done < items.length && !isDeadline(signal);) {
    signal.throwIfAborted();
    const batch = items.slice(done, done + itemsPerBatch);
    try {
      rows.push(...(await measureBatch(batch)));
    } catch (error) {
      if (isDeadline(signal)) break;
      throw error;
    }
    done += batch.length;
    progress(done);
  }
  return rows;
}
