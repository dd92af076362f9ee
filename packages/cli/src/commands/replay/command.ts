import type { Command } from "commander";
import { backendOption, modelOption } from "../../config/command-options.ts";
import type { ReplayRequest } from "./run.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface ReplayOptions {
  readonly model: string;
  readonly config?: string;
  readonly questions?: string;
  readonly backend?: string;
  readonly json: boolean;
}

/** `replay`: a snapshot's measurement, once more. */
export function addReplay(program: Command, terminal: Terminal): void {
  program
    .command("replay")
    .description("measure again what a snapshot measured, from its saved weights, and compare")
    .argument("<snapshot>", "a snapshot of a run with saveAdapterAtFiring")
    .addOption(modelOption())
    .option(
      "--config <file>",
      "YAML or JSON with the run's periodic_eval block; paths are relative to the file",
    )
    .option("--questions <file>", "of capability, in place of --config: the ARC-format questions, JSONL")
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action((snapshot: string, options: ReplayOptions, command: Command) => {
      const { config, questions } = options;
      const from = config !== undefined ? { config } : questions !== undefined ? { questions } : null;
      if (from === null || (config !== undefined && questions !== undefined))
        command.error("error: name one of '--config <file>' and '--questions <file>'");
      else return replayed({ snapshot, from, ...options }, terminal);
    });
}

async function replayed(
  { snapshot, from, model, backend, json }: Pick<ReplayRequest, "snapshot" | "from"> & ReplayOptions,
  terminal: Terminal,
): Promise<void> {
  const { PeriodicEvalError } = await import("@periodic-eval/core");
  const { replay, toleranceWords } = await import("./run.ts");
  const { replayJson, replayTable } = await import("./output.ts");
  const { onInterrupt } = await import("../../terminal/interrupt.ts");
  const { signal, stopListening } = onInterrupt();
  try {
    const request = { snapshot, from, model, signal, ...(backend !== undefined && { backend }) };
    const result = await replay(request, terminal);
    terminal.out(json ? replayJson(result) : replayTable(result, terminal.colours));
    const others = result.metrics.filter(({ isSame }) => !isSame).map(({ name }) => name);
    if (others.length === 0) return;
    throw new PeriodicEvalError({
      code: "data",
      where: snapshot,
      got: `other values of ${others.join(", ")}`,
      expected: `the same: ${toleranceWords}`,
      fix: "Look at what else is not as it was: weights, data, a judge that is asked anew.",
    });
  } finally {
    stopListening();
  }
}
