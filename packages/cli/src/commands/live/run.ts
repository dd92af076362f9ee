import { consoleLogger } from "@periodic-eval/loggers/console";
import { checkClient, serveTrainer } from "@periodic-eval/live";
import { CommandFailure } from "../../terminal/interrupt.ts";
import { configure } from "../watch/configuration.ts";
import { serverOf } from "./measure-on.ts";
import type { LoadTasks } from "../../config/open-grader.ts";
import { jsonText, progressOnly, type Terminal } from "../../terminal/terminal.ts";
import { refuseOtherRun } from "./other-run.ts";

/** Serves the trainer at the other end of stdin and stdout. Lines for people go to stderr. */
export async function live({
  terminal,
  loadTasks,
}: {
  readonly terminal: Terminal;
  readonly loadTasks: LoadTasks;
}): Promise<void> {
  const people = progressOnly(terminal);
  const trainer = process.ppid;
  await serveTrainer({
    input: process.stdin,
    output: process.stdout,
    async open(hello) {
      const { config, phase, run_dir: runDir } = hello;
      const written = { config, phase, runDir, canMeasureOn: true };
      const { block, seed, loggers, place } = await configure(written, loadTasks);
      await refuseOtherRun(hello);
      return {
        callbacks: block.callbacks,
        ...block.session,
        savesAtFiring: block.saveAdapterAtFiring,
        measureOn: serverOf(block, hello),
        seed,
        loggers: [consoleLogger(people), ...loggers],
        place,
      };
    },
    warn: (message) => people.err(`the trainer: ${message}`),
    isTrainerGone: () => process.ppid !== trainer,
  });
}

/** Prints what a client of the live protocol answers wrongly. Fails if anything is wrong. */
export async function checkCommand(
  command: string,
  json: boolean,
  { out, colours }: Terminal,
): Promise<void> {
  const checks = await checkClient(command);
  if (json) out(jsonText({ checks }));
  else
    for (const { name, problem } of checks)
      out(problem === null ? `${colours.green("ok")}  ${name}` : `${colours.red("no")}  ${name}: ${problem}`);
  if (checks.some(({ problem }) => problem !== null)) throw new CommandFailure(1);
}
