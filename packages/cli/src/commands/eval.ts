import type { SystemPrompt } from "@periodic-eval/core";
import type { Command } from "commander";
import { backendOption, listOf, modelOption, subsampleSeedOption, wholeNumber } from "../options.ts";
import type { Terminal } from "../terminal.ts";

interface EvalOptions {
  readonly model: string;
  readonly questions: string;
  readonly method: readonly ("letters" | "cloze")[];
  readonly limit?: number;
  readonly system: string;
  readonly subsampleSeed: number;
  readonly backend?: string;
  readonly json: boolean;
}

/** `eval`: capability of a model, once, without training. */
export function addEval(program: Command, terminal: Terminal): void {
  program
    .command("eval")
    .description("measure the capability of a model, without training")
    .addOption(modelOption())
    .requiredOption("--questions <file>", "ARC-format questions, JSONL")
    .option("--method <names>", "letters, cloze, or both with a comma", listOf(["letters", "cloze"]), [
      "letters",
    ])
    .option("--limit <number>", "questions to ask (default: all)", wholeNumber(1))
    .addOption(subsampleSeedOption())
    .option("--system <text>", "system prompt of letters: omit, empty, no_system_block, or a text", "omit")
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action((options: EvalOptions, command: Command) => {
      if (options.system !== "omit" && !options.method.includes("letters"))
        command.error("error: option '--system <text>' is for the method letters: cloze renders no chat");
      return evaluate(options, terminal);
    });
}

async function evaluate(options: EvalOptions, terminal: Terminal): Promise<void> {
  const { measureCapability } = await import("../measure-capability.ts");
  const { capabilityTable, capabilityJson } = await import("../capability-output.ts");
  const { model, questions, method, limit, system, subsampleSeed, backend, json } = options;
  const results = await measureCapability(
    {
      model,
      questions,
      methods: method,
      subsample: limit === undefined ? null : { n: limit, seed: subsampleSeed },
      system: systemPrompt(system),
      ...(backend !== undefined && { backend }),
    },
    terminal,
  );
  terminal.out(json ? capabilityJson(results) : capabilityTable(results, terminal.colours));
}

function systemPrompt(text: string): SystemPrompt {
  if (text === "omit" || text === "no_system_block") return text;
  return { text: text === "empty" ? "" : text };
}
