import * as z from "zod";

/** Schema of a path that a logger writes to. */
export const pathOption = z
  .string("a path")
  .min(1, "a path")
  .meta({ fix: "Name the file or folder to write to; missing folders are created." });

/** Returns milliseconds since 1970. */
export const wallClock = (): number => new Date().getTime();

/** Schema of a clock. */
export const clockOption = z
  .custom<() => number>(
    (value) => typeof value === "function",
    "a function that returns milliseconds since 1970",
  )
  .optional();
