/** Returns seconds with three significant digits: `0.123 s`. */
export const secondsText = (seconds: number): string => `${Number(seconds.toPrecision(3))} s`;
