import type { Command } from "commander";

/**
 * Ends with an error for an option of a parent command that its subcommand does not have: the parent consumes it, before or after
 * the subcommand's name.
 *
 * @throws CommanderError after printing the error.
 */
export function refuseIgnoredOptions(command: Command): void {
  const known = command.options.map((option) => option.attributeName());
  for (let parent = command.parent; parent !== null; parent = parent.parent) {
    const ignored = parent.options.find(
      (option) =>
        parent.getOptionValueSource(option.attributeName()) === "cli" &&
        !known.includes(option.attributeName()),
    );
    if (ignored === undefined) continue;
    command.error(
      `error: option '${ignored.flags}' is for '${nameOf(parent)}' and not for '${nameOf(command)}'`,
    );
  }
}

/** Returns `feedback serve`. */
const nameOf = (command: Command): string =>
  command.parent?.parent == null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
