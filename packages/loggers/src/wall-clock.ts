/** Milliseconds since 1970. */
export const wallClock = (): number => new Date().getTime();
