/** Servers compute with 16-bit numbers and round to few digits, so a log-probability of 0 can arrive as a number above 0. */
export const natsTolerance = 0.02;

/** Whether a value of a server's reply is a log-probability. */
export const isNats = (value: unknown): value is number =>
  Number.isFinite(value) && (value as number) <= natsTolerance;
