import type { Row } from "../evaluation/types.ts";
import { keyText } from "../snapshots/order.ts";
import type { Snapshot } from "../snapshots/schema.ts";
import { messageOf } from "./ring.ts";
import type { Finished, Run } from "./run.ts";

/**
 * Writes a snapshot and its rows, and lines it up for loggers and hooks. What the store refuses (a full disk) is kept
 * and written with the next snapshot, at the latest at `close`: training goes on.
 *
 * @param stale why a record of the same key, left from a training that was cut off, is set aside first.
 */
export async function commit(
  run: Run,
  snapshot: Snapshot,
  rows: readonly Row[],
  {
    stale = null,
    failure = null,
  }: { readonly stale?: string | null; readonly failure?: Finished["failure"] } = {},
): Promise<void> {
  let written = snapshot;
  run.unwritten = run.unwritten.filter((one) => keyText(one.snapshot) !== keyText(snapshot));
  run.unwritten.push({ snapshot, rows, stale });
  try {
    await writeAll(run);
    // The store adds what it knows, the file of the rows.
    written = (await run.store.get(snapshot)) ?? snapshot;
  } catch (error) {
    run.telling.warn(
      "store",
      `could not write ${keyText(snapshot)}, which will be tried again: ${messageOf(error)}`,
    );
    if (run.options.onFailure === "throw") run.toThrow ??= error;
  }
  run.records.settle(written);
  run.finished.push({ snapshot: written, failure });
}

/** Writes all that is not written yet; throws where the store still refuses. One writes at a time. */
export function writeAll(run: Run): Promise<void> {
  const turn = run.writing.then(() => writeInOrder(run));
  run.writing = turn.catch(() => undefined);
  return turn;
}

async function writeInOrder(run: Run): Promise<void> {
  for (let next = run.unwritten[0]; next !== undefined; next = run.unwritten[0]) {
    const { snapshot, rows, stale } = next;
    if (stale !== null) {
      await run.store.supersede(snapshot, stale);
      next.stale = null;
    }
    await run.store.put(snapshot, rows);
    run.unwritten = run.unwritten.filter((one) => one !== next);
  }
}
