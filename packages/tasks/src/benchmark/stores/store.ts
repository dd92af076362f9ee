import type { CallOptions, Json } from "@periodic-eval/core";

/** Where results are put besides the run's folder. */
export interface BenchmarkStore {
  /** As warnings name it; nothing secret. */
  readonly name: string;
  /**
   * Keeps a value under a name (`arithmetic/run-1/train/arithmetic_step_100.json`: letters, digits, `_`, `-`, `.` and
   * slashes), in place of what it had. What it throws is recorded, and stops nothing.
   */
  put(name: string, value: Json, options: Pick<CallOptions, "signal">): Promise<void>;
}
