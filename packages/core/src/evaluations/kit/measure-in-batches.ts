import { isDeadline } from "./deadline.ts";
import type { MeasureContext } from "../../contracts/evaluation.ts";

/**
 * Measures items a call at a time, in order; those of the calls that were done where a deadline cuts it off. Between calls
 * progress is told and an abort heard.
 *
 * @param itemsPerCall the engine batches them by length
 * @throws the signal's reason where it is aborted for another one than a deadline; and whatever `ask` throws.
 */
export async function measureInBatches<I, R>(
  items: readonly I[],
  { signal, progress }: MeasureContext,
  ask: (items: readonly I[]) => Promise<readonly R[]>,
  itemsPerCall = 64,
): Promise<readonly R[]> {
  const rows: R[] = [];
  for (let done = 0; done < items.length && !isDeadline(signal);) {
    signal.throwIfAborted();
    const some = items.slice(done, done + itemsPerCall);
    try {
      rows.push(...(await ask(some)));
    } catch (error) {
      if (isDeadline(signal)) break;
      throw error;
    }
    done += some.length;
    progress(done);
  }
  return rows;
}
