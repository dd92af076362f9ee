import { fromWritten, type Written } from "@periodic-eval/contracts/options";
import { nodeFiles } from "@periodic-eval/store";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants, setPriority } from "node:os";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { integer } from "../config/command-options.ts";
import { onInterrupt } from "../terminal/interrupt.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { readResults } from "./read-runs.ts";

interface Address {
  readonly host: string;
  readonly port: number;
}

/** The value of `--serve [address]`: true for the default one. */
export type ServeOption = Address | true | undefined;

/** Parses `8010`, `0.0.0.0:8010` or `[::1]:8010`. */
export function serveAddress(value: string): Address {
  const [, host = "127.0.0.1", port = ""] = /^(?:(.+):)?(\d*)$/.exec(value) ?? [];
  return { host, port: integer(0, 65_535)(port) };
}

/** The option of commands that train. */
export const serveFlag = [
  "--serve [address]",
  "show the run in the browser meanwhile, at [host:]port",
  serveAddress,
] as const;

const written: Written = {
  where: ([option]) => (option === "token" ? "PERIODIC_EVAL_TOKEN" : "--serve"),
  pathOf: (option) => (option[0] === "root" ? null : option),
};

/** Serves the runs below a folder until a signal, or until the command ends that serves its own run. */
export async function serveFolder(root: string, serve: Address | true, terminal: Terminal): Promise<void> {
  const { serveResults } = await import("@periodic-eval/dashboard/server");
  const { PERIODIC_EVAL_TOKEN: token } = process.env;
  const address = serve === true ? {} : serve;
  const options = { root, ...address, ...(token !== undefined && { token }), readResults };
  const serving = await fromWritten(written, () => serveResults(options));
  const { signal, stopListening } = onInterrupt(terminal);
  try {
    terminal.out(serving.address);
    terminal.err("Press Ctrl-C to stop.");
    await ended(signal);
  } finally {
    stopListening();
    await serving.close();
  }
}

/** Waits for a signal that ends the process, or for the end of the command that serves its own run. */
async function ended(signal: AbortSignal): Promise<void> {
  // That command may have ended while this one loaded. Without a channel, `connected` is undefined.
  if (signal.aborted || process.connected === false) return;
  let end = () => {};
  const isOver = new Promise<void>((resolve) => (end = resolve));
  signal.addEventListener("abort", end, { once: true });
  process.once("disconnect", end);
  await isOver;
  process.off("disconnect", end);
}

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
  const address = serve === true ? "0" : `${serve.host}:${serve.port}`;
  const child = spawn(process.execPath, [main, "report", runDir, "--serve", address], {
    // The channel tells the server when this process is killed.
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  giveWay(child.pid);
  const ended = once(child, "close").catch(() => undefined);
  const exited = once(child, "exit").catch(() => undefined);
  let problem = "";
  child.stderr!.on("data", (text: Buffer) => (problem += text.toString()));
  const served = await Promise.race([once(child.stdout!, "data").then(String), ended.then(() => null)]);
  if (served === null) terminal.err(`The run is not served: ${problem.trim()}`);
  else terminal.out(`Live page, while this command runs: ${served.trim()}`);
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
