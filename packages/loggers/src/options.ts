import { filledString, functionSchema } from "@periodic-eval/contracts/options";

/** Schema of a path that a logger writes to. */
export const pathOption = filledString("a path").meta({
  fix: "Name the file or folder to write to; missing folders are created.",
});

/** Returns milliseconds since 1970. */
export const wallClock = (): number => new Date().getTime();

/** Schema of a clock. */
export const clockOption = functionSchema<() => number>(
  "a function that returns milliseconds since 1970",
).optional();
