import type { SystemPrompt } from "@periodic-eval/core";
import type { Command } from "commander";
import { backendOption, listOf, modelOption, namesOf, subsampleSeedOption, wholeNumber } from "../../config/command-options.ts";
import type { SuiteRequest } from "./suite.ts";
import { chatOf, checkSystem } from "../../config/task-options.ts";
import type { LoadTasks } from "../../config/task-registry.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface EvalOptions {
  readonly model: string;
  readonly adapter?: string;
  readonly questions?: string;
  readonly method: readonly ("letters" | "cloze")[];
  readonly limit?: number;
  readonly system: string;
  readonly subsampleSeed: number;
  readonly tasks?: readonly string[];
  readonly data?: string;
  readonly shots?: number;
  readonly chat: boolean;
  /** `true` is the package's. */
  readonly suite?: string | true;
  readonly smoke: boolean;
  readonly results?: string;
  readonly name?: string;
  readonly backend?: string;
  readonly json: boolean;
}

type Kind = "questions" | "tasks" | "suite";

/** Options that not all kinds have. */
const optionsOf: Readonly<Partial<Record<keyof EvalOptions, readonly Kind[]>>> = {
  adapter: ["tasks", "suite"],
  method: ["questions"],
  limit: ["questions", "tasks"],
  subsampleSeed: ["questions"],
  system: ["questions", "tasks"],
  data: ["tasks", "suite"],
  shots: ["tasks"],
  chat: ["tasks"],
  smoke: ["suite"],
  results: ["tasks", "suite"],
  name: ["tasks", "suite"],
};

/** `eval`: a model measured once, without training: by questions, by tasks, or by a suite of tasks. */
export function addEval(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  program
    .command("eval")
    .description("measure a model, without training: by --questions, by --tasks, or by a --suite of tasks")
    .addOption(modelOption())
    .option("--questions <file>", "ARC-format questions, JSONL")
    .option("--method <names>", "letters, cloze, or both with a comma", listOf(["letters", "cloze"]), [
      "letters",
    ])
    .option("--tasks <names>", "benchmarks with commas between: arc_challenge,mmlu,gsm8k", namesOf)
    .option("--suite [file]", "a suite that all methods share (default: mmlu, gsm8k, truthfulqa_mc2, ifeval)")
    .option("--smoke", "10 documents of each task of the suite, kept apart from whole runs", false)
    .option("--data <folder>", "a folder for each task in it: arc_challenge/, mmlu/ …")
    .option("--adapter <folder>", "a LoRA adapter as PEFT saves it, or owner/name; measured on the model")
    .option(
      "--shots <number>",
      "solved examples before each question (default: each task's own)",
      wholeNumber(0),
    )
    .option(
      "--limit <number>",
      "questions to ask; of tasks the first so many of each subject (default: all)",
      wholeNumber(1),
    )
    .addOption(subsampleSeedOption())
    .option("--chat", "put the tasks' prompts into the model's chat template", false)
    .option(
      "--system <text>",
      "system prompt of letters, or of a chat: omit, empty, no_system_block, or a text",
      "omit",
    )
    .option(
      "--results <folder>",
      "keeps metrics.json and the harness' files, and goes on with a run that was killed (default: results for a suite; tasks are only printed)",
    )
    .option("--name <name>", "of the run in metrics.json (default: the model's)")
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action((options: EvalOptions, command: Command) => {
      const kind = kindOf(options, command);
      const flag = (name: string) => command.options.find((one) => one.attributeName() === name)!.flags;
      for (const [name, kinds] of Object.entries(optionsOf)) {
        if (command.getOptionValueSource(name) !== "cli" || kinds.includes(kind)) continue;
        const why = kind === "suite" && kinds.includes("tasks") ? ": the suite says it for all methods" : "";
        command.error(
          `error: option '${flag(name)}' is for ${kinds.map((one) => `--${one}`).join(" and ")}, not for --${kind}${why}`,
        );
      }
      if (kind === "questions") {
        if (options.system !== "omit" && !options.method.includes("letters"))
          command.error("error: option '--system <text>' is for the method letters: cloze renders no chat");
        return evaluate(options, options.questions!, terminal);
      }
      if (kind === "tasks" && options.data === undefined)
        command.error(`error: required option '${flag("data")}' not specified`);
      checkSystem(options, command);
      return evaluateTasks(options, loadTasks, terminal);
    });
}

function kindOf(options: EvalOptions, command: Command): Kind {
  const given = (["questions", "tasks", "suite"] as const).filter((kind) => options[kind] !== undefined);
  if (given.length !== 1) {
    const got = given.length === 0 ? "none" : given.map((kind) => `--${kind}`).join(" and ");
    command.error(`error: expected one of --questions, --tasks and --suite, got ${got}`);
  }
  return given[0]!;
}

async function evaluateTasks(options: EvalOptions, loadTasks: LoadTasks, terminal: Terminal): Promise<void> {
  const { measureSuite } = await import("./suite.ts");
  const { suiteTable, suiteJson } = await import("./suite-output.ts");
  const { model, adapter = null, smoke, backend, name, json } = options;
  const results = options.results ?? (options.tasks === undefined ? "results" : null);
  const run = await measureSuite(
    {
      model,
      adapter,
      measured: measuredOf(options),
      smoke,
      results,
      ...(name !== undefined && { name }),
      ...(backend !== undefined && { backend }),
    },
    await loadTasks(),
    terminal,
  );
  if (json) return terminal.out(suiteJson(run, results));
  if (run.measured.length === 0) terminal.err("measured before, and nothing has changed since");
  terminal.out(suiteTable(run, terminal.colours));
  if (results !== null) terminal.out(run.folder);
}

function measuredOf({ tasks, suite, data, shots, limit, ...asked }: EvalOptions): SuiteRequest["measured"] {
  if (tasks === undefined)
    return { suite: typeof suite === "string" ? suite : null, ...(data !== undefined && { data }) };
  return {
    names: tasks,
    data: data!,
    ...(shots !== undefined && { shots }),
    ...(limit !== undefined && { limit }),
    chat: chatOf(asked),
  };
}

async function evaluate(options: EvalOptions, questions: string, terminal: Terminal): Promise<void> {
  const { measureCapability } = await import("./capability.ts");
  const { capabilityTable, capabilityJson } = await import("./capability-output.ts");
  const { model, method, limit, system, subsampleSeed, backend, json } = options;
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
