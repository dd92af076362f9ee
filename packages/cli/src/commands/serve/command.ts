import type { Command } from "commander";
import { wholeNumber } from "../../config/command-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface ServeOptions {
  readonly host: string;
  readonly port: number;
}

/** `serve`: the runs below a folder in the browser, finished or not. */
export function addServe(program: Command, terminal: Terminal): void {
  program
    .command("serve")
    .description("show the runs below a folder in the browser, finished, running or dead")
    .argument("<folder>", "of runs, of training on feedback, or of results; nothing outside it is shown")
    .option("--port <number>", "0: any that is free", wholeNumber(0, 65_535), 8010)
    .option(
      "--host <address>",
      "where it listens; there is no password: on any other than the default, others can read it too",
      "127.0.0.1",
    )
    .action((folder: string, options: ServeOptions) => serve(folder, options, terminal));
}

async function serve(root: string, { host, port }: ServeOptions, terminal: Terminal): Promise<void> {
  const { serveResults } = await import("@periodic-eval/dashboard/server");
  const { readResults } = await import("../../run/read-results.ts");
  const { onInterrupt } = await import("../../terminal/interrupt.ts");
  const serving = await serveResults({ root, host, port, readResults });
  const { signal, stopListening } = onInterrupt();
  terminal.out(serving.address);
  terminal.err("Ctrl-C ends it.");
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  stopListening();
  await serving.close();
}
