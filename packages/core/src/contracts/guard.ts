import type { Awaitable } from "./json.ts";
import type { Evidence } from "./snapshot.ts";

/** What a guard holds between entering and leaving. */
export interface Entered {
  /** The observed state, or null where it cannot be observed. The guard named `weights` gives the fingerprint. */
  readonly before: string | null;
  /** Restores what the guard changed and tells what it saw; called exactly once, in reverse order of entering. */
  leave(): Awaitable<Evidence>;
}

/**
 * Enters before a window, leaves after it in `finally`, returns evidence.
 * `around: "hooks"` asks to be entered round every callback hook as well; such a guard must cost microseconds.
 * `advisory` guards report without counting as a disturbance of training (a leaked tensor, say).
 */
export interface Guard {
  readonly name: string;
  readonly around?: "windows" | "hooks";
  readonly advisory?: boolean;
  enter(context: GuardContext): Awaitable<Entered>;
}

export interface GuardContext {
  /** Names the random stream that stands in for training's while the guard is entered. */
  readonly seed: string;
  /**
   * This guard's evidence of the measurement just before in the same window, with nothing in between: `after` may
   * then be taken for `before` instead of being observed again. Left out for the first measurement of a window.
   */
  readonly justLeft?: Evidence;
}
