import { PeriodicEvalError, type ValuePath } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/core/config";
import { atOption, atWritten, changedError } from "@periodic-eval/contracts/options";
import { fixForMissing, isMissingFile } from "@periodic-eval/data";
import { mayNameDataset, valueAt } from "./config-paths.ts";

/**
 * Returns an error about options as one about a file, with its line.
 *
 * @param pathOf Returns the path in the file of an option.
 */
export function atPlace(file: ConfigFile, error: unknown, pathOf: (option: ValuePath) => ValuePath): unknown {
  const placed = atWritten(error, { where: file.where, pathOf, root: "periodic_eval" });
  if (!PeriodicEvalError.is(placed) || !mayNameDataset(placed.path) || !isMissingFile(placed)) return placed;
  return changedError(placed, { fix: fixForMissing(valueAt(file.value, placed.path), placed.fix) });
}

/** Returns an error about the value at `path` in a file. */
export const fileError = (
  file: Pick<ConfigFile, "where">,
  path: ValuePath,
  details: { readonly got: string; readonly expected: string; readonly fix: string },
): PeriodicEvalError =>
  new PeriodicEvalError({ code: "config", where: file.where(path), path, isWritten: true, ...details });

/** Runs `make`, whose errors are about the value at `path` of a file, and name the place in what the value names. */
export const withPlace = <T>(file: ConfigFile, path: ValuePath, make: () => T | Promise<T>): Promise<T> =>
  placing(
    file,
    () => path,
    () => atOption({ where: path.join("."), path }, async () => make()),
  );

/** Runs `make`, whose errors are about the options at `path` of a file. */
export const withOptionPlace = <T>(
  file: ConfigFile,
  path: ValuePath,
  make: () => T | Promise<T>,
): Promise<T> => placing(file, (option) => [...path, ...option], make);

async function placing<T>(
  file: ConfigFile,
  pathOf: (option: ValuePath) => ValuePath,
  make: () => T | Promise<T>,
): Promise<T> {
  try {
    return await make();
  } catch (error) {
    throw atPlace(file, error, pathOf);
  }
}
