import { nodeFiles } from "@periodic-eval/store";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants, setPriority } from "node:os";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { integer } from "../config/command-options.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** The value of `--serve [port]`: a port, true for a free one, or undefined. */
export type ServeOption = number | true | undefined;

/** The option of commands that train. */
export const serveFlag = [
  "--serve [port]",
  "show the run live in the browser while the command runs (default port: a free one)",
  integer(0, 65_535),
] as const;

const here = import.meta.url;
const main = fileURLToPath(new URL(`../main${extname(here)}`, here));

/**
 * Serves a run in another process of lower priority while `work` runs, so that its pages take no time from training. A server that
 * cannot start is reported, and the work goes on without it.
 */
export async function withServedRun<T>(
  runDir: string,
  { serve, terminal }: { readonly serve: ServeOption; readonly terminal: Terminal },
  work: () => Promise<T>,
): Promise<T> {
  if (serve === undefined) return work();
  await nodeFiles.makeFolder(runDir);
  const port = serve === true ? 0 : serve;
  const child = spawn(process.execPath, [main, "serve", runDir, "--port", String(port)], {
    // The channel tells the server when this process is killed.
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  giveWay(child.pid);
  const ended = once(child, "close").catch(() => undefined);
  const exited = once(child, "exit").catch(() => undefined);
  let problem = "";
  child.stderr!.on("data", (text: Buffer) => (problem += text.toString()));
  const address = await Promise.race([once(child.stdout!, "data").then(String), ended.then(() => null)]);
  // The child calls the port that was typed behind --serve by the name of its flag.
  if (address === null) terminal.err(`The run is not served: ${problem.trim().replace("--port", "--serve")}`);
  else terminal.out(`Live page, while this command runs: ${address.trim()}`);
  try {
    return await work();
  } finally {
    // An open channel would keep the server's process running after its signal. Without it, the event `close` does not come.
    if (child.connected) child.disconnect();
    child.kill();
    await exited;
  }
}

/** Lowers the priority of a process, where the system allows it: training goes first if both need the same core. */
function giveWay(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // The process has ended, or a sandbox forbids it. The page is served at the same priority.
  }
}
