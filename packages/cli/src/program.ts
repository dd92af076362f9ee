import { Command, CommanderError } from "commander";
import { createRequire } from "node:module";
import { addCompare } from "./commands/compare/command.ts";
import { addData } from "./commands/data/command.ts";
import { addDemo } from "./commands/demo/command.ts";
import { addEval } from "./commands/eval/command.ts";
import { addExport } from "./commands/export/command.ts";
import { addFeedback } from "./commands/feedback/command.ts";
import { addGate } from "./commands/gate/command.ts";
import { addInit } from "./commands/init/command.ts";
import { addLive } from "./commands/live/command.ts";
import { addMisalignedRate } from "./commands/misaligned-rate/command.ts";
import { addNative } from "./commands/native/command.ts";
import { addPlan } from "./commands/plan/command.ts";
import { addRejudge } from "./commands/rejudge/command.ts";
import { addReplay } from "./commands/replay/command.ts";
import { addReport } from "./commands/report/command.ts";
import { addServe } from "./commands/serve/command.ts";
import { addTrain } from "./commands/train/command.ts";
import { addVerify } from "./commands/verify/command.ts";
import { addWatch } from "./commands/watch/command.ts";
import { loadTasks, type LoadTasks } from "./config/task-registry.ts";
import { CommandFailure } from "./terminal/command-failure.ts";
import { checkHelp } from "./terminal/check-help.ts";
import { processTerminal, safeTerminal, type Terminal } from "./terminal/terminal.ts";

const { version } = createRequire(import.meta.url)("../package.json") as { readonly version: string };

const exitCodes = { done: 0, failed: 1, usage: 2 } as const;

/** In the order of the help. */
const commands = [
  addDemo,
  addInit,
  addTrain,
  addWatch,
  addLive,
  addEval,
  addData,
  addReport,
  addPlan,
  addCompare,
  addExport,
  addVerify,
  addGate,
  addMisalignedRate,
  addRejudge,
  addReplay,
  addFeedback,
  addServe,
  addNative,
];

/** Returns the command line with all commands, without running one. The documentation's reference is made from it. */
export function createProgram(terminal: Terminal, tasks: LoadTasks = loadTasks): Command {
  const program = new Command("periodic-eval")
    .version(version)
    .description("See what fine-tuning does to a language model, while it happens.")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(text.trimEnd()),
      writeErr: (text) => terminal.err(text.trimEnd()),
    });
  for (const add of commands) add(program, terminal, tasks);
  return program;
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
  const program = createProgram(terminal, tasks);
  let running = program;
  program.hook("preAction", (_, command) => {
    running = command;
  });
  try {
    checkHelp(program, args);
    await program.parseAsync([...args], { from: "user" });
    return exitCodes.done;
  } catch (thrown) {
    const { atFlags } = await import("./terminal/at-flags.ts");
    const error = atFlags(thrown, running);
    if (error instanceof CommandFailure) {
      if (error.cause !== null) await printError(error.cause, terminal, false);
      return error.exitCode;
    }
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    const { interruptedCode } = await import("./terminal/interrupt.ts");
    const code = interruptedCode(error);
    await printError(error, terminal, code !== null);
    return code ?? exitCodes.failed;
  }
}

/** Prints an error: the message of a PeriodicEvalError, which says what to do, and the stack of any other error. */
async function printError(error: unknown, terminal: Terminal, isInterrupted: boolean): Promise<void> {
  const { PeriodicEvalError } = await import("@periodic-eval/core");
  const { errorMessage } = await import("@periodic-eval/contracts/options");
  const isOurs = (one: unknown) => PeriodicEvalError.is(one);
  const several = error instanceof AggregateError ? (error.errors as readonly unknown[]) : [];
  if (PeriodicEvalError.is(error) && error.detail?.kind === "interrupted")
    return terminal.err(`${error.got}. ${error.fix}`);
  if (isInterrupted) return terminal.err("Interrupted. Run the same command again.");
  if (isOurs(error) || !(error instanceof Error)) terminal.err(errorMessage(error));
  else if (several.length > 0 && several.every(isOurs)) terminal.err(several.map(errorMessage).join("\n"));
  else terminal.err(error.stack ?? errorMessage(error));
}
