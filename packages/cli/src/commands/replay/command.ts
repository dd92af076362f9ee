import type { Command } from "commander";
import { backendOption, modelOption } from "../../config/command-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import type { ReplayRequest } from "./run.ts";

interface ReplayOptions {
  readonly model: string;
  readonly config?: string;
  readonly questions?: string;
  readonly backend?: string;
  readonly json: boolean;
}

/** `replay`: repeats the measurement of a snapshot. */
export function addReplay(program: Command, terminal: Terminal): void {
  program
    .command("replay")
    .description("repeat the measurement of a snapshot from its saved weights, and compare")
    .argument("<snapshot>", "a snapshot of a run with saveAdapterAtFiring")
    .addOption(modelOption())
    .option(
      "--config <file>",
      "YAML or JSON with the run's periodic_eval block; paths are relative to the file",
    )
    .option("--questions <file>", "questions, as for eval; replaces --config for capability")
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action((snapshot: string, options: ReplayOptions, command: Command) => {
      const { config, questions } = options;
      const from = config !== undefined ? { config } : questions !== undefined ? { questions } : null;
      if (from === null || (config !== undefined && questions !== undefined))
        command.error("error: pass either '--config <file>' or '--questions <file>'");
      else return compareReplay({ snapshot, from, ...options }, terminal);
    });
}

async function compareReplay(
  { snapshot, from, model, backend, json }: Pick<ReplayRequest, "snapshot" | "from"> & ReplayOptions,
  terminal: Terminal,
): Promise<void> {
  const { PeriodicEvalError } = await import("@periodic-eval/core");
  const { onInterrupt } = await import("../../terminal/interrupt.ts");
  const { replay, toleranceText } = await import("./run.ts");
  const { replayJson, replayTable } = await import("./output.ts");
  const { signal, stopListening } = onInterrupt(terminal);
  try {
    const request = { snapshot, from, model, signal, ...(backend !== undefined && { backend }) };
    const result = await replay(request, terminal);
    terminal.out(json ? replayJson(result) : replayTable(result, terminal.colours));
    const changed = result.metrics.filter(({ isSame }) => !isSame).map(({ name }) => name);
    if (changed.length === 0) return;
    throw new PeriodicEvalError({
      code: "data",
      where: snapshot,
      got: `other values of ${changed.join(", ")}`,
      expected: `the same: ${toleranceText}`,
      fix: "Check whether weights, data or judge have changed.",
    });
  } finally {
    stopListening();
  }
}
