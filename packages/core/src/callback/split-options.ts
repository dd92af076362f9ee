import { periodicOptionNames, type PeriodicOptions } from "./periodic-callback.ts";

/** When to measure, and what: the options of a callback that takes those of its evaluation as well. */
export function splitOptions<T extends Partial<PeriodicOptions>>(
  options: T,
): { readonly periodic: Partial<PeriodicOptions>; readonly own: Omit<T, keyof PeriodicOptions> } {
  const isPeriodic = (name: string) => (periodicOptionNames as readonly string[]).includes(name);
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const pick = (wanted: boolean) => Object.fromEntries(given.filter(([name]) => isPeriodic(name) === wanted));
  return {
    periodic: pick(true),
    // Sorted by name, which types cannot follow.
    own: pick(false) as Omit<T, keyof PeriodicOptions>,
  };
}
