import { Option, type Command } from "commander";
import { integer } from "../../config/command-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface ServeOptions {
  readonly host: string;
  readonly port: number;
  readonly token?: string;
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
    .action((folder: string, options: ServeOptions) => serve(folder, options, terminal));
}

async function serve(root: string, options: ServeOptions, terminal: Terminal): Promise<void> {
  const { serveResults } = await import("@periodic-eval/dashboard/server");
  const { readResults } = await import("../../run/read-results.ts");
  const { onInterrupt } = await import("../../terminal/interrupt.ts");
  const serving = await serveResults({ root, ...options, readResults });
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
