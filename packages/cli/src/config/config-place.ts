import { PeriodicEvalError, type ValuePath } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/core/config";
import { throwAll } from "./collect-errors.ts";

/** Returns the error with its place in a file in front. Errors that are not PeriodicEvalErrors stay as they are. */
export function atPlace(file: ConfigFile, path: ValuePath, error: unknown): unknown {
  if (!PeriodicEvalError.is(error)) return error;
  const { code, where, got, expected, fix } = error;
  const place = file.where(path);
  // Core names values of the block by their path in the file, which the place repeats.
  const [first, ...others] = where.split(", ");
  const repeats = place.endsWith(first!.replaceAll(/\[(\d+)\]/g, ".$1"));
  const combined = repeats ? [place, ...others].join(", ") : `${place}, ${where}`;
  return new PeriodicEvalError({ code, where: combined, path, got, expected, fix, cause: error });
}

/** Returns an error about the value at `path` in a file. */
export const fileError = (
  file: Pick<ConfigFile, "where">,
  path: ValuePath,
  details: { readonly got: string; readonly expected: string; readonly fix: string },
): PeriodicEvalError => new PeriodicEvalError({ code: "config", where: file.where(path), path, ...details });

/** Options, and the path at which a file holds them. */
export type OptionsAt = readonly [path: ValuePath, options: object];

/**
 * Returns the path in the file of the option that an error is about. Of several groups of options, it is the first group that
 * contains the option, otherwise the first group.
 */
export function optionPath(error: unknown, ...groups: readonly [OptionsAt, ...OptionsAt[]]): ValuePath {
  const path = PeriodicEvalError.is(error) ? error.path : [];
  const [key] = path;
  if (key !== undefined) {
    const [at] = groups.find(([, options]) => Object.hasOwn(options, key)) ?? groups[0];
    return [...at, ...path];
  }
  for (const text of PeriodicEvalError.is(error) ? [error.where, error.got] : []) {
    const words = text.split(/\W/);
    for (const [at, options] of groups) {
      const named = words.find((word) => Object.hasOwn(options, word));
      if (named !== undefined) return [...at, named];
    }
  }
  return groups[0][0];
}

/** Runs `make` and prefixes an error with the place of the wrong option among the options at `path`. */
export const withOptionPlace = <T>(
  file: ConfigFile,
  path: ValuePath,
  options: object,
  make: () => T | Promise<T>,
): Promise<T> => withPathOf(file, (error) => optionPath(error, [path, options]), make);

/** Runs `make` and prefixes an error with the place of the value at `path`. */
export const withPlace = <T>(file: ConfigFile, path: ValuePath, make: () => T | Promise<T>): Promise<T> =>
  withPathOf(file, () => path, make);

/**
 * Runs `build` and prefixes an error with its place in the `periodic_eval` block, which stands at `at` in the file.
 *
 * @param pathWithoutKey Returns the path within the block of an error without a path. Default: the whole block.
 */
export const withBlockPlace = <T>(
  file: ConfigFile,
  at: ValuePath,
  build: () => Promise<T>,
  pathWithoutKey: (error: unknown) => ValuePath = () => [],
): Promise<T> => withPathOf(file, (error) => [...at, ...blockPathOf(error, pathWithoutKey)], build);

export function blockPathOf(error: unknown, pathWithoutKey: (error: unknown) => ValuePath): ValuePath {
  if (!PeriodicEvalError.is(error)) return [];
  if (error.path.length > 0) return error.path;
  const place = error.where.split(", ")[0]!;
  const [block, ...path] = place.replaceAll(/\[(\d+)\]/g, ".$1").split(".");
  return block === "periodic_eval" ? path : pathWithoutKey(error);
}

async function withPathOf<T>(
  file: ConfigFile,
  pathOf: (error: unknown) => ValuePath,
  make: () => T | Promise<T>,
): Promise<T> {
  try {
    return await make();
  } catch (error) {
    const all = error instanceof AggregateError ? (error.errors as readonly unknown[]) : [error];
    throwAll(all.map((one) => atPlace(file, pathOf(one), one)));
    throw error;
  }
}
