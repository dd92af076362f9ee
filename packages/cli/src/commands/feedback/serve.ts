import { Option, type Command } from "commander";
import { backendOption, wholeNumber } from "../../config/command-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface ServeOptions {
  readonly host: string;
  readonly port: number;
  readonly root: string;
  readonly backend?: string;
}

/** `feedback serve`: the model that feedback trains, over HTTP, until Ctrl-C. */
export function addFeedbackServe(feedback: Command, terminal: Terminal): void {
  feedback
    .command("serve")
    .description("offer a model that is trained on feedback over HTTP, for service_url=…")
    .argument("[overrides...]", "base_model=…: a folder or owner/name (default: the embedded model)")
    .addOption(
      new Option("--port <number>", "to listen on; 0 for any that is free")
        .argParser(wholeNumber(0))
        .default(8000),
    )
    .option(
      "--host <address>",
      "to listen on; beyond this machine OPENCLAW_GATEWAY_TOKEN must be set",
      "127.0.0.1",
    )
    .option("--root <folder>", "of the adapters", "data/adapters")
    .addOption(backendOption())
    // By the parent, which has an option of that name too, it would be taken.
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
  const { localParts } = await import("./run.ts");
  const source = await baseModelOf(overrides);
  const parts = await localParts(source, backend, terminal);
  const { model, engine } = parts.describe;
  const { signal, stopListening } = onInterrupt();
  const service = await serveFeedback({
    ...parts,
    model,
    root,
    host,
    port,
    onFailure: (error) => terminal.err(error.stack ?? error.message),
  });
  try {
    const words = source === null ? "--config-name micro-world " : "";
    terminal.out(
      `${model} on ${engine} at ${service.url}; adapters are kept in ${root}. Ctrl-C ends it.\n` +
        `periodic-eval feedback ${words}service_url=${service.url}`,
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
        got: "no setting of the service",
        expected: "base_model=…",
        fix: "Say it to `periodic-eval feedback`, which tells the service how to train.",
      });
    source = value;
  }
  return source;
}
