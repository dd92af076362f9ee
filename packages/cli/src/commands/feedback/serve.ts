import { Option, type Command } from "commander";
import { backendOption, integer } from "../../config/command-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface ServeOptions {
  readonly host: string;
  readonly port: number;
  readonly root: string;
  readonly backend?: string;
}

/** `feedback serve`: serves the model that feedback trains over HTTP until Ctrl-C. */
export function addFeedbackServe(feedback: Command, terminal: Terminal): void {
  feedback
    .command("serve")
    .description("serve a model that feedback trains over HTTP; pass its address as service_url=…")
    .argument("[overrides...]", "base_model=…: a folder or owner/name (default: the embedded model)")
    .addOption(
      new Option("--port <number>", "port to listen on; 0 selects a free one")
        .argParser(integer(0))
        .default(8000),
    )
    .option(
      "--host <address>",
      "address to listen on; any but this machine's own requires OPENCLAW_GATEWAY_TOKEN",
      "127.0.0.1",
    )
    .option("--root <folder>", "folder of the adapters", "runs/adapters")
    .addOption(backendOption())
    // The parent command has a --backend too and would consume it, hence `optsWithGlobals`.
    .action((overrides: readonly string[], _: unknown, command: Command) =>
      serve(overrides, command.optsWithGlobals<ServeOptions>(), terminal),
    );
}

async function serve(
  overrides: readonly string[],
  { host, port, root, backend }: ServeOptions,
  terminal: Terminal,
): Promise<void> {
  const { serveFeedback } = await import("@periodic-eval/feedback/service");
  const { onInterrupt } = await import("../../terminal/interrupt.ts");
  const { localModel } = await import("./local-model.ts");
  const source = await baseModelOf(overrides);
  const parts = await localModel(source, backend, terminal);
  const { model, engine } = parts.describe;
  const { signal, stopListening } = onInterrupt(terminal);
  const service = await serveFeedback({
    ...parts,
    model,
    root,
    host,
    port,
    onFailure: (error) => terminal.err(error.stack ?? error.message),
  });
  try {
    const configName = source === null ? "--config-name micro-world " : "";
    terminal.out(
      `${model} on ${engine} at ${service.url}; adapters are kept in ${root}. Press Ctrl-C to stop.\n` +
        `npx periodic-eval feedback ${configName}service_url=${service.url}`,
    );
    if (!signal.aborted)
      await new Promise<void>((done) => signal.addEventListener("abort", () => done(), { once: true }));
  } finally {
    await service.close();
    stopListening();
  }
}

async function baseModelOf(overrides: readonly string[]): Promise<string | null> {
  const { PeriodicEvalError } = await import("@periodic-eval/core");
  let source: string | null = null;
  for (const override of overrides) {
    const value = /^base_model=(.+)$/s.exec(override)?.[1];
    if (value === undefined)
      throw new PeriodicEvalError({
        code: "config",
        where: override,
        got: "an override that the service does not have",
        expected: "base_model=…",
        fix: "Pass it to `npx periodic-eval feedback`, which sends training options to the service.",
      });
    source = value;
  }
  return source;
}
