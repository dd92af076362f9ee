import { PeriodicEvalError, type ValuePath } from "@periodic-eval/core";
import { atWritten, fromWritten, type Written } from "@periodic-eval/contracts/options";
import type { Command } from "commander";

/** Returns an error about an option that a flag of the command sets as one about the flag; other errors as they are. */
export function atFlags(error: unknown, command: Command): unknown {
  const flagOf = (name: unknown) =>
    command.options.find(
      (option) => option.attributeName() === name && command.getOptionValue(String(name)) !== undefined,
    );
  if (PeriodicEvalError.is(error) && error.isWritten) return error;
  // The place of an error in a model is the model, which a flag names.
  const ofSource = PeriodicEvalError.is(error) && error.path.length === 0 ? error.where : null;
  const source = command.options.find(
    (option) => command.getOptionValue(option.attributeName()) === ofSource,
  );
  return atWritten(error, {
    where: ([name]) => flagOf(name)!.long!,
    pathOf: (option) =>
      flagOf(option[0]) !== undefined ? option : source === undefined ? null : [source.attributeName()],
    nameOf: (name) => flagOf(name)?.long ?? null,
  });
}

/** Returns a flag that sets everything that is wrong. */
const flag = (name: string): Written => ({ where: () => name, pathOf: (): ValuePath => [name] });

/** Runs `open`. Its errors are about the value of a flag. */
export const atFlag = <T>(name: string, open: () => Promise<T>): Promise<T> => fromWritten(flag(name), open);
