import { PeriodicEvalError, type ValuePath } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/core/config";
import { changedError, pathText, snakeCase } from "@periodic-eval/contracts/options";
import { fixForMissing, isMissingFile } from "@periodic-eval/data";
import { throwAll } from "./collect-errors.ts";
import { mayNameDataset, valueAt } from "./config-paths.ts";

/** Returns the error with its place in a file in front. Errors that are not PeriodicEvalErrors stay as they are. */
export function atPlace(file: ConfigFile, path: ValuePath, error: unknown): unknown {
  if (!PeriodicEvalError.is(error)) return error;
  const { where, fix } = error;
  const place = file.where(path);
  // Core names values of the block by their path in the file, and trainers those of `config`: the place repeats them.
  const [first, ...others] = where.split(", ");
  const named = first!.replace(/^((SFT|DPO) |useBackend options\.)/, "").replaceAll(/\[(\d+)\]/g, ".$1");
  const repeats = place.endsWith(named) || place.endsWith(`${named})`);
  const combined = repeats ? [place, ...others].join(", ") : `${place}, ${where}`;
  const hint =
    mayNameDataset(path) && isMissingFile(error) ? fixForMissing(valueAt(file.value, path), fix) : fix;
  return changedError(error, { where: combined, path, fix: hint });
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
  const [at] = groups.find(([, options]) => key !== undefined && Object.hasOwn(options, key)) ?? groups[0];
  return [...at, ...path];
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
  // The path of a wrong row is within its file or dataset.
  const isInSource = error.code === "data" && !error.where.startsWith("periodic_eval");
  if (error.path.length === 0 || isInSource) return pathWithoutKey(error);
  return withEntryKey([...error.path, ...entryKey(error)]);
}

/** Returns a path with the keys of an `evaluations` entry as the block spells them: `num_samples` for the option `numSamples`. */
function withEntryKey(path: ValuePath): ValuePath {
  const listAt = path[0] === "phases" ? 2 : 0;
  if (path[listAt] !== "evaluations") return path;
  return path.map((key, at) => (at > listAt + 1 && typeof key === "string" ? snakeCase(key) : key));
}

/** Errors of some evaluations name the wrong key of their entry only in `where`: `periodic_eval.evaluations[0].preference`. */
function entryKey({ where, path }: PeriodicEvalError): ValuePath {
  const entry = `periodic_eval${pathText(path)}.`;
  const key = where.startsWith(entry) ? /^\w+/.exec(where.slice(entry.length)) : null;
  return key === null ? [] : [key[0]];
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
