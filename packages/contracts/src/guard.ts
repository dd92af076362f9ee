import * as z from "zod";
import type { Awaitable } from "./json.ts";

export const evidenceSchema = z.object({
  part: z.string().describe("The guard's name; after a slash, the part that it observed."),
  before: z
    .string()
    .nullable()
    .describe("What the guard observed before the measurement; null if it observed nothing."),
  after: z
    .string()
    .nullable()
    .describe("What the guard observed after the measurement; null if it observed nothing."),
  intact: z.boolean().nullable().describe("True: observed unchanged. False: changed. Null: not observed."),
  advisory: z
    .boolean()
    .optional()
    .describe("True if a change does not count as a disturbance of the training (a leaked tensor)."),
  note: z.string().optional().describe("What a reader should know about this evidence."),
});

export type Evidence = z.infer<typeof evidenceSchema>;

/**
 * Observes that measuring changes nothing of the training: it records a state before a window, restores what the window may
 * change, and reports evidence after it.
 */
export interface Guard {
  readonly name: string;
  /**
   * `"windows"` (default): the session enters the guard around each measurement. `"hooks"`: around each callback hook too;
   * such a guard must take microseconds, and must not return promises.
   */
  readonly around?: "windows" | "hooks";
  /** Whether the guard only warns: its findings (a leaked tensor) do not count as a disturbance of the training. */
  readonly advisory?: boolean;
  /** Whether the guard observes a training in another process, whose random numbers are not those of this process. */
  readonly isElsewhere?: boolean;
  enter(context: GuardContext): Awaitable<EnteredGuard>;
}

/** An entered guard. The session calls `leave` in a `finally`. */
export interface EnteredGuard {
  /**
   * The observed state before the window, or null if the guard cannot observe it. The guard named `weights` returns the
   * fingerprint of the weights.
   */
  readonly before: string | null;
  /** Restores what the guard changed and returns its evidence. Called exactly once, in reverse order of entering. */
  leave(): Awaitable<Evidence>;
}

export interface GuardContext {
  /** Names the random stream that replaces the training's while the guard is entered. */
  readonly seed: string;
  /**
   * This guard's evidence of the previous measurement in the same window. Nothing ran in between, so the guard may use its
   * `after` as `before` instead of observing again. Absent for the first measurement of a window.
   */
  readonly justLeft?: Evidence;
}
