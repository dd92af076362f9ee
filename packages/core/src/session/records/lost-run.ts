import type { SnapshotStore } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import type { Reporter } from "./reporter.ts";

/** Returns why the run can no longer be written; null while it can. Warns once. A loss is final. */
export function lostRun(store: SnapshotStore, reporter: Reporter): () => Error | null {
  let lost: Error | null = null;
  return () => {
    if (lost !== null) return lost;
    lost = store.lost?.() ?? null;
    if (lost !== null) reporter.warn("store", `${errorMessage(lost)} Measuring stops.`);
    return lost;
  };
}
