import { createRequire } from "node:module";
import { Command, CommanderError, Help, type Option } from "commander";
import { loadTasks, type LoadTasks } from "./config/open-grader.ts";
import { atFlags } from "./config/command-options.ts";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { CommandFailure, interruptedCode } from "./terminal/interrupt.ts";
import { processTerminal, safeTerminal, type Terminal } from "./terminal/terminal.ts";

const { version } = createRequire(import.meta.url)("../package.json") as { readonly version: string };

const exitCodes = { done: 0, failed: 1, usage: 2 } as const;

type AddCommand = (program: Command, terminal: Terminal, tasks: LoadTasks) => void;

/** In the order of the help. A command imports all that it needs, so only the one that runs is loaded. */
const commands: Readonly<Record<string, () => Promise<AddCommand>>> = {
  demo: async () => (await import("./commands/demo/command.ts")).addDemo,
  train: async () => (await import("./commands/train/command.ts")).addTrain,
  watch: async () => (await import("./commands/watch/command.ts")).addWatch,
  live: async () => (await import("./commands/live/command.ts")).addLive,
  eval: async () => (await import("./commands/eval/command.ts")).addEval,
  data: async () => (await import("./commands/data/command.ts")).addData,
  report: async () => (await import("./commands/report/command.ts")).addReport,
  plan: async () => (await import("./commands/plan/command.ts")).addPlan,
  compare: async () => (await import("./commands/compare/command.ts")).addCompare,
  verify: async () => (await import("./commands/verify/command.ts")).addVerify,
  gate: async () => (await import("./commands/gate/command.ts")).addGate,
  rejudge: async () => (await import("./commands/rejudge/command.ts")).addRejudge,
  export: async () => (await import("./commands/export/command.ts")).addExport,
  feedback: async () => (await import("./commands/feedback/command.ts")).addFeedback,
  native: async () => (await import("./commands/native/command.ts")).addNative,
};

/**
 * Returns the command line without running a command. The documentation's reference is made from it.
 *
 * @param names The commands to load. Default: all.
 */
export async function createProgram(
  terminal: Terminal,
  tasks: LoadTasks = loadTasks,
  names: readonly string[] = Object.keys(commands),
): Promise<Command> {
  const program = new Command("periodic-eval")
    .version(version)
    .description("See what fine-tuning does to a language model, while it happens.")
    .exitOverride()
    .configureHelp({ optionDescription })
    .configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.err(text.trimEnd()),
    });
  for (const name of names) (await commands[name]!())(program, terminal, tasks);
  return program;
}

/** Leaves out defaults that say nothing: a flag that is not set, an empty list, the value of a flag without one. */
function optionDescription(option: Option): string {
  const isSilent = option.isBoolean() || Array.isArray(option.defaultValue);
  const hidden = { presetArg: { value: undefined }, ...(isSilent && { defaultValue: { value: undefined } }) };
  return new Help().optionDescription(Object.create(option, hidden) as Option);
}

/**
 * Runs the command line and returns its exit code: 0 done, 1 failed, 2 wrong usage, 3 if the result of `gate` is inconclusive, 128 + the
 * number of the signal that interrupted it. Prints errors instead of throwing them.
 *
 * @param output Where commands print; escape sequences of names and texts are shown escaped.
 * @param tasks Loads the tasks that commands can name. Default: those of @periodic-eval/tasks.
 */
export async function runCli(
  args: readonly string[],
  output: Terminal = processTerminal,
  tasks: LoadTasks = loadTasks,
): Promise<number> {
  const terminal = safeTerminal(output);
  const name = (args[0] === "help" ? args[1] : args[0]) ?? "";
  const known = Object.hasOwn(commands, name) ? [name] : undefined;
  const program = await createProgram(terminal, tasks, name === "--version" ? [] : known);
  let running = program;
  program.hook("preAction", (_, command) => {
    running = command;
  });
  try {
    checkHelp(program, args);
    await program.parseAsync([...args], { from: "user" });
    return exitCodes.done;
  } catch (thrown) {
    const error = atFlags(thrown, running);
    if (error instanceof CommandFailure) {
      if (error.cause !== null) printError(error.cause, terminal, false);
      return error.exitCode;
    }
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    const code = interruptedCode(error);
    printError(error, terminal, code !== null);
    return code ?? exitCodes.failed;
  }
}

/**
 * Ends with an error for help of an unknown command (`help nonsense`, `data nonsense --help`), for which commander prints the help
 * of the parent command.
 *
 * @throws CommanderError after printing the error.
 */
function checkHelp(program: Command, args: readonly string[]): void {
  const isHelp = args[0] === "help";
  const words = isHelp ? args.slice(1) : args.slice(0, args.findIndex(isHelpFlag) + 1);
  let command = program;
  for (const word of words) {
    if (word.startsWith("-") || word === "help" || command.commands.length === 0) return;
    const next = command.commands.find((subcommand) => subcommand.name() === word);
    if (next === undefined)
      return command.error(
        `error: unknown command '${word}', expected one of ${command.commands.map((subcommand) => subcommand.name()).join(", ")}`,
      );
    command = next;
  }
}

const isHelpFlag = (arg: string): boolean => arg === "--help" || arg === "-h";

/** Prints an error: the message of a PeriodicEvalError, which says what to do, and the stack of any other error. */
function printError(error: unknown, terminal: Terminal, isInterrupted: boolean): void {
  const isOurs = (thrown: unknown) => PeriodicEvalError.is(thrown);
  const several = error instanceof AggregateError ? (error.errors as readonly unknown[]) : [];
  if (PeriodicEvalError.is(error) && error.detail?.kind === "interrupted")
    return terminal.err(`${error.got}. ${error.fix}`);
  if (isInterrupted) return terminal.err("Interrupted. Run the same command again.");
  if (isOurs(error) || !(error instanceof Error)) terminal.err(errorMessage(error));
  else if (several.length > 0 && several.every(isOurs)) terminal.err(several.map(errorMessage).join("\n"));
  else terminal.err(error.stack ?? errorMessage(error));
}
