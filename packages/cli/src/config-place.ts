import { PeriodicEvalError } from "@periodic-eval/core";
import type { ValuePath } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/core/config";
import { throwAll } from "./every-error.ts";

/** The error with another place, which names its own too; what is no error of ours is left as it is. */
export function placed(where: string, error: unknown): unknown {
  if (!PeriodicEvalError.is(error)) return error;
  const { code, got, expected, fix } = error;
  const [first, ...own] = error.where.split(", ");
  const place = where.endsWith(first!.replaceAll(/\[(\d+)\]/g, ".$1"))
    ? [where, ...own].join(", ")
    : `${where}, ${error.where}`;
  return new PeriodicEvalError({ code, where: place, got, expected, fix, cause: error });
}

/** Options, and where they stand in a file. */
export type OptionsAt = readonly [path: ValuePath, options: object];

/**
 * The path of the option that the error is about, in the first of these that has it, else where the first stand: the option
 * that its place names, or one that it got, where an option is named beside which another is wrong.
 */
export function optionPath(error: unknown, ...all: readonly [OptionsAt, ...OptionsAt[]]): ValuePath {
  for (const text of PeriodicEvalError.is(error) ? [error.where, error.got] : []) {
    const words = text.split(/\W/);
    for (const [path, options] of all) {
      const named = words.find((word) => Object.hasOwn(options, word));
      if (named !== undefined) return [...path, named];
    }
  }
  return all[0][0];
}

/** What it makes of options that stand at `path`; to its error the place of the wrong one is added. */
export const withOptionPlace = <T>(
  file: ConfigFile,
  path: ValuePath,
  options: object,
  make: () => T | Promise<T>,
): Promise<T> => withPathOf(file, (error) => optionPath(error, [path, options]), make);

/** What it makes of what stands at `path`; to its error that place is added. */
export const withPlace = <T>(file: ConfigFile, path: ValuePath, make: () => T | Promise<T>): Promise<T> =>
  withPathOf(file, () => path, make);

/**
 * Core says where in the `periodic_eval` block it is; here it is said where in the file, whose block stands at `at`.
 *
 * @param elsewhere where in the block an error is that core does not place; default the block
 */
export const withBlockPlace = <T>(
  file: ConfigFile,
  at: ValuePath,
  build: () => Promise<T>,
  elsewhere: (error: unknown) => ValuePath = () => [],
): Promise<T> =>
  withPathOf(
    file,
    (error) => {
      // What is behind a comma is the evaluation's own.
      const place = PeriodicEvalError.is(error) ? error.where.split(", ")[0]! : "";
      const [block, ...path] = place.replaceAll(/\[(\d+)\]/g, ".$1").split(".");
      return [...at, ...(block === "periodic_eval" ? path : elsewhere(error))];
    },
    build,
  );

async function withPathOf<T>(
  file: ConfigFile,
  pathOf: (error: unknown) => ValuePath,
  make: () => T | Promise<T>,
): Promise<T> {
  try {
    return await make();
  } catch (error) {
    const all = error instanceof AggregateError ? (error.errors as readonly unknown[]) : [error];
    throwAll(all.map((one) => placed(file.where(pathOf(one)), one)));
    throw error;
  }
}
