import type { z } from "zod";
import { PeriodicEvalError } from "../../errors.ts";
import { parseOptions } from "../../internal/parse-options.ts";

/**
 * Checks what a file holds against a schema, as `parseOptions` checks options.
 *
 * @param file The file's path: errors read `<file>[0].id`.
 * @throws PeriodicEvalError `data` for the first wrong value.
 */
export function parseData<S extends z.ZodType>(file: string, schema: S, value: unknown): z.output<S> {
  try {
    return parseOptions(file, schema, value);
  } catch (error) {
    if (!PeriodicEvalError.is(error, "config")) throw error;
    const { where, path, got, expected, fix } = error;
    throw new PeriodicEvalError({ code: "data", where, path, got, expected, fix });
  }
}
