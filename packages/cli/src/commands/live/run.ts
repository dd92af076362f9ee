import { consoleLogger } from "@periodic-eval/loggers/console";
import { serveTrainer } from "@periodic-eval/live";
import { configure } from "../../config/eval-configuration.ts";
import type { LoadTasks } from "../../config/task-registry.ts";
import { progressOnly, type Terminal } from "../../terminal/terminal.ts";

/** Serves the trainer at the other end of stdin and stdout. Lines for people go to stderr. */
export async function live({
  terminal,
  loadTasks,
}: {
  readonly terminal: Terminal;
  readonly loadTasks: LoadTasks;
}): Promise<void> {
  const people = progressOnly(terminal);
  await serveTrainer({
    input: process.stdin,
    output: process.stdout,
    async open({ config, phase, run_dir: runDir }) {
      const { block, seed, loggers } = await configure({ config, phase, runDir }, loadTasks);
      return {
        callbacks: block.callbacks,
        ...block.session,
        savesAtFiring: block.saveAdapterAtFiring,
        seed,
        loggers: [consoleLogger(people), ...loggers],
      };
    },
    warn: (message) => people.err(`the trainer: ${message}`),
  });
}
