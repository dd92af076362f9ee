/** A clock that a test advances. Pass `clock: clock.seconds, now: clock.iso` to a session. */
export interface ManualClock {
  /** Returns the seconds since the clock's origin. */
  seconds(): number;
  /** Returns the same time as ISO 8601. The origin is 2026-01-01T00:00:00Z. */
  iso(): string;
  advance(seconds: number): void;
}

/** Returns a clock that changes only by `advance`. */
export function manualClock(): ManualClock {
  const origin = Date.UTC(2026, 0, 1);
  let seconds = 0;
  return {
    seconds: () => seconds,
    iso: () => new Date(origin + 1000 * seconds).toISOString(),
    advance(by) {
      if (!(by >= 0)) throw new RangeError(`a clock cannot advance by ${by} seconds`);
      seconds += by;
    },
  };
}
