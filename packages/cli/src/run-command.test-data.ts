import { runCli } from "./program.ts";
import { recordingTerminal } from "./terminal/recording-terminal.test-data.ts";

/** Runs a command in this process and returns its exit code and output. */
export async function runCommand(args: readonly string[], tasks?: Parameters<typeof runCli>[2]) {
  const terminal = recordingTerminal();
  const code = await runCli(args, terminal, tasks);
  return { code, out: terminal.outputs.join("\n"), err: terminal.errors.join("\n") };
}
