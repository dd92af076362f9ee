import { onInterrupt } from "../../terminal/interrupt.ts";
import { readResults } from "../../run/read-runs.ts";
import { serveResults } from "@periodic-eval/dashboard/server";
import { spawn } from "node:child_process";
import { Option, type Command } from "commander";
import { integer } from "../../config/command-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface ServeOptions {
  readonly host: string;
  readonly port: number;
  readonly token?: string;
  readonly open: boolean;
}

/** `serve`: shows the runs below a folder in the browser, finished or not. */
export function addServe(program: Command, terminal: Terminal): void {
  program
    .command("serve")
    .description("show the runs below a folder in the browser, whether finished, running or interrupted")
    .argument("<folder>", "folder of runs, feedback outputs or results; nothing outside it is shown")
    .option("--port <number>", "port to listen on; 0 selects a free one", integer(0, 65_535), 8010)
    .option(
      "--host <address>",
      "address to listen on; any but the default lets others read the runs, unless there is a token",
      "127.0.0.1",
    )
    .addOption(
      new Option(
        "--token <string>",
        "token that requests must send: programs as a bearer token, browsers as a password (other users of this machine see the command line; the variable is safer)",
      ).env("PERIODIC_EVAL_TOKEN"),
    )
    .option("--open", "open the page in the browser", false)
    .action((folder: string, options: ServeOptions) => serve(folder, options, terminal));
}

async function serve(root: string, { open, ...options }: ServeOptions, terminal: Terminal): Promise<void> {
  const serving = await serveResults({ root, ...options, readResults });
  const { signal, stopListening } = onInterrupt(terminal);
  try {
    terminal.out(serving.address);
    terminal.err("Press Ctrl-C to stop.");
    if (open) {
      if (!(await openBrowser(serving.address)))
        terminal.err("No browser was found. Open the address by hand.");
    }
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

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Opens an address in the browser. Resolves to whether a program for it was started. */
async function openBrowser(address: string): Promise<boolean> {
  const [command, ...args] = openers[process.platform] ?? ["xdg-open"];
  return new Promise((resolve) => {
    const child = spawn(command, [...args, address], { stdio: "ignore", detached: true });
    child.once("error", () => resolve(false));
    child.once("spawn", () => resolve(true));
    child.unref();
  });
}
