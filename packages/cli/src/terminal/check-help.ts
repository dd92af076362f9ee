import type { Command } from "commander";

/**
 * Ends with an error for help of an unknown command (`help nonsense`, `data nonsense --help`), for which commander prints the help
 * of the parent command.
 *
 * @throws CommanderError after printing the error.
 */
export function checkHelp(program: Command, args: readonly string[]): void {
  const isHelp = args[0] === "help";
  const words = isHelp ? args.slice(1) : args.slice(0, args.findIndex(isHelpFlag) + 1);
  let command = program;
  for (const word of words) {
    if (word.startsWith("-") || word === "help" || command.commands.length === 0) return;
    const next = command.commands.find((one) => one.name() === word);
    if (next === undefined)
      return command.error(
        `error: unknown command '${word}', expected one of ${command.commands.map((one) => one.name()).join(", ")}`,
      );
    command = next;
  }
}

const isHelpFlag = (arg: string): boolean => arg === "--help" || arg === "-h";
