import { z } from "zod";

/** Returns the schema of an optional function. Signatures are checked by TypeScript only. */
export const optionalFunction = <F extends (...args: never[]) => unknown>() =>
  z.custom<F>((value) => typeof value === "function", "a function").optional();
