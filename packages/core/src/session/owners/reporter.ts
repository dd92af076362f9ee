import type { SnapshotKey } from "../../contracts/snapshot.ts";

/** Where the session's owners report problems. */
export interface Reporter {
  /** @param failed The measurement that the warning is about, if its failed snapshot follows. */
  warn(where: string, message: string, failed?: SnapshotKey): void;
  /** Keeps an error for the session's caller, if `onFailure` is `"throw"`. */
  fail(error: unknown): void;
}
