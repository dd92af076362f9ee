import type { z } from "zod";
import { PeriodicEvalError } from "../../errors.ts";
import { parseOptions } from "../../internal/parse-options.ts";
import type { PlaceOf } from "./read-data.ts";

/**
 * Checks the content of a source against a schema, as `parseOptions` checks options.
 *
 * @param placeOf Places errors: `<file>[0].id`.
 * @throws PeriodicEvalError `data` for the first wrong value.
 */
export function parseData<S extends z.ZodType>(placeOf: PlaceOf, schema: S, value: unknown): z.output<S> {
  try {
    return parseOptions("", schema, value);
  } catch (error) {
    if (!PeriodicEvalError.is(error, "config")) throw error;
    const { path, got, expected, fix } = error;
    throw new PeriodicEvalError({ code: "data", where: placeOf(path), path, got, expected, fix });
  }
}
