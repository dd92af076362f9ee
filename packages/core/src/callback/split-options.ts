import { z } from "zod";
import { parseOptions } from "../internal/parse-options.ts";
import { periodicShape, type PeriodicOptions } from "./periodic-callback.ts";

/**
 * Checks the options of a callback that also takes the options of its evaluation, and splits them.
 *
 * @param where Names the options in errors: `PeriodicCapabilityCallback options`.
 * @param shape The schemas of the evaluation's options.
 * @throws PeriodicEvalError `config` for a wrong or unknown option.
 */
export function splitOptions<T extends Partial<PeriodicOptions>>(
  where: string,
  shape: z.ZodRawShape,
  options: T,
): { readonly periodic: Partial<PeriodicOptions>; readonly evaluation: Omit<T, keyof PeriodicOptions> } {
  parseOptions(where, z.strictObject({ ...shape, ...z.object(periodicShape).partial().shape }), options);
  const isSet = Object.entries(options).filter(([, value]) => value !== undefined);
  const pick = (isPeriodic: boolean) =>
    Object.fromEntries(isSet.filter(([name]) => Object.hasOwn(periodicShape, name) === isPeriodic));
  return {
    periodic: pick(true),
    // TypeScript cannot follow the split by name.
    evaluation: pick(false) as Omit<T, keyof PeriodicOptions>,
  };
}
