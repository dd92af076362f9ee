// Writes the reference of the command line from the commands themselves.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Returns the built command line as a commander program. Nothing runs. */
export async function openProgram(root) {
  const dist = (file) => import(pathToFileURL(join(root, "packages/cli/dist", file)).href);
  const { createProgram } = await dist("program.js");
  const { processTerminal } = await dist("terminal/terminal.js");
  return createProgram({ ...processTerminal, out: () => {}, err: () => {} });
}

/** Returns the commands that can be run, with their full names: `data list`. */
export function commandsOf(program, prefix = "") {
  return program.commands.flatMap((command) => {
    const name = `${prefix}${command.name()}`;
    const inner = commandsOf(command, `${name} `);
    const runs = inner.length === 0 || command.createHelp().visibleArguments(command).length > 0;
    return name === "help" ? [] : [...(runs ? [{ name, command }] : []), ...inner];
  });
}

/** The help as the command prints it, 110 columns wide. */
function helpOf(command) {
  let text = "";
  command.configureOutput({
    writeOut: (part) => (text += part),
    getOutHelpWidth: () => 110,
    getErrHelpWidth: () => 110,
  });
  command.outputHelp();
  return text.trimEnd();
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

/** Returns a section for each command, with a table of contents. */
export function commandSections(program) {
  const commands = commandsOf(program);
  const lines = ["| command | what it does |", "|---|---|"];
  for (const { name, command } of commands)
    lines.push(
      `| [\`${name}\`](#${name.replaceAll(" ", "-")}) | ${sentence(command.description()).replaceAll("|", "\\|")} |`,
    );
  for (const { name, command } of commands)
    lines.push("", `### ${name}`, "", "```text", helpOf(command), "```");
  return lines.join("\n");
}
