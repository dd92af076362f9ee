import { PeriodicEvalError } from "@periodic-eval/core";
import { changedError, quoteValue } from "@periodic-eval/contracts/options";
import type { Command } from "commander";

/** Returns an error about the value of a command's option as one about the flag that the user wrote; other errors as they are. */
export function atFlags(error: unknown, command: Command): unknown {
  if (error instanceof AggregateError)
    return new AggregateError(
      (error.errors as readonly unknown[]).map((one) => atFlags(one, command)),
      error.message,
    );
  if (!PeriodicEvalError.is(error)) return error;
  for (const option of command.options) {
    const name = option.attributeName();
    const value: unknown = command.getOptionValue(name);
    if (typeof value !== "string" || option.long === undefined) continue;
    const { where, path, got, cause } = error;
    const isOption = path[0] === name && where.endsWith(` options.${name}`);
    // Core does not know whether a flag or an argument names the file that it reads.
    const isFile = ["config", "suite"].includes(where) && got.startsWith(quoteValue(value));
    if (isOption || isFile) return changedError(error, { where: option.long, cause });
    if (where === value) return changedError(error, { where: `${option.long} ${value}`, cause });
  }
  return error;
}

/** Runs `open`. Its errors are about the value of a flag. */
export async function atFlag<T>(flag: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (!PeriodicEvalError.is(error)) throw error;
    throw changedError(error, { where: flag, cause: error });
  }
}
