import type { Interval } from "@periodic-eval/core/statistics";

/** Against the reference. */
export interface Change {
  /** Documents that both answered, pair by pair; null: as of two independent samples. */
  readonly pairs: number | null;
  readonly delta: number;
  readonly ci95: Interval | null;
  /** Null where there is no interval. */
  readonly verdict: "better" | "worse" | "changed" | "no evidence" | null;
}
