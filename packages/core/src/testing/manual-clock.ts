/** Time that a test moves by hand. Pass `clock: clock.seconds, now: clock.iso` to a session. */
export interface ManualClock {
  /** Seconds from the clock's origin. */
  seconds(): number;
  /** The same moment as ISO 8601; the origin is 2026-01-01T00:00:00Z. */
  iso(): string;
  advance(seconds: number): void;
}

/** A clock that stands still until `advance`. */
export function manualClock(): ManualClock {
  const origin = Date.UTC(2026, 0, 1);
  let seconds = 0;
  return {
    seconds: () => seconds,
    iso: () => new Date(origin + 1000 * seconds).toISOString(),
    advance(by) {
      if (!(by >= 0)) throw new RangeError(`a clock cannot go ${by} seconds on`);
      seconds += by;
    },
  };
}
