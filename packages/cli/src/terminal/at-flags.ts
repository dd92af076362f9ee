import { PeriodicEvalError } from "@periodic-eval/core";
import { atWritten, fromWritten } from "@periodic-eval/contracts/options";
import type { Command } from "commander";

/** Returns an error about an option that a flag of the command sets as one about the flag; other errors as they are. */
export function atFlags(error: unknown, command: Command): unknown {
  if (PeriodicEvalError.is(error) && error.isWritten) return error;
  const flags = command.options.map((option) => [option.attributeName(), option.long!] as const);
  const flagOf = (name: unknown) =>
    flags.find(([one]) => one === name && command.getOptionValue(one) !== undefined)?.[1] ?? null;
  // The place of an error in a model is the model, which a flag names.
  const source = PeriodicEvalError.is(error) && error.path.length === 0 ? error.where : null;
  const named = flags.filter(([one]) => command.getOptionValue(one) === source).map(([one]) => [one]);
  return atWritten(error, {
    where: ([name]) => flagOf(name)!,
    pathOf: (option) => (flagOf(option[0]) !== null ? option : (named[0] ?? null)),
    nameOf: flagOf,
  });
}

/** Runs `open`. Its errors are about the value of a flag. */
export const atFlag = <T>(name: string, open: () => Promise<T>): Promise<T> =>
  fromWritten({ where: () => name, pathOf: () => [name] }, open);
