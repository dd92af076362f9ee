import type { Command } from "commander";
import type { LoadTasks } from "../../config/open-grader.ts";
import type { Terminal } from "../../terminal/terminal.ts";

const explanation = `
A trainer in another process starts this command and speaks with it over stdin and stdout:
  pip install periodic-eval     the callback for transformers, TRL and plain PyTorch loops
  docs/reference/live-protocol.md     the protocol, for other trainers`;

/** `live`: measures the model of a trainer that speaks the live protocol. */
export function addLive(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  program
    .command("live")
    .description("measure the model of a trainer in another process, which starts this command")
    .option("--check <command>", "run a trainer's command line, and check what it answers")
    .option("--json", "for --check: print one JSON document", false)
    .addHelpText("after", explanation)
    .action(async ({ check, json }: { readonly check?: string; readonly json: boolean }) => {
      if (check === undefined && process.stdin.isTTY) return terminal.out(explanation.trim());
      const { live, checkCommand } = await import("./run.ts");
      await (check === undefined ? live({ terminal, loadTasks }) : checkCommand(check, json, terminal));
    });
}
