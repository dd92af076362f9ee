import type { TrainerCallback, SnapshotKey } from "@periodic-eval/contracts";

/** Where the parts of a session report problems. */
export interface Reporter {
  /** @param failed The measurement that the warning is about, if its failed snapshot follows. */
  warn(where: string, message: string, failed?: SnapshotKey): void;
  /** Keeps an error for the session's caller, if `onFailure` is `"throw"`. */
  fail(error: unknown): void;
  /** Says that a snapshot graded in the background waits for the next step. */
  graded?(key: SnapshotKey): void;
}

/** Names a callback in warnings and errors. */
export const callbackName = ({ id }: Pick<TrainerCallback, "id">): string => `callback "${id}"`;
