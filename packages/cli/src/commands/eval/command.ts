import { evaluateAlignment, evaluateQuestions, type EvalOptions, type QuestionMethod } from "./questions.ts";
import { type TaskRegistry, datasetOf } from "@periodic-eval/tasks";
import { Option, type Command } from "commander";
import {
  backendOption,
  defaultQuestions,
  engineOption,
  flagsOf,
  integer,
  listOf,
  nameList,
  publishedQuestions,
  sampleSize,
} from "../../config/command-options.ts";
import { checkSystemPrompt, evaluateTasks } from "./suite.ts";
import type { LoadTasks } from "../../config/open-grader.ts";
import type { Terminal } from "../../terminal/terminal.ts";

const sources = ["questions", "tasks", "suite", "graded"] as const;

/** The kinds of measurements. `open`: open questions of --questions, which a judge grades. */
type Kind = (typeof sources)[number] | "open";

/** Options that apply only to some kinds. */
const kindsOf: Readonly<Partial<Record<keyof EvalOptions, readonly Kind[]>>> = {
  model: ["questions", "open", "tasks", "suite"],
  adapter: ["questions", "open", "tasks", "suite"],
  tokenizer: ["questions", "open", "tasks", "suite"],
  backend: ["questions", "open", "tasks", "suite"],
  engine: ["questions", "tasks", "suite"],
  method: ["questions", "suite"],
  limit: ["questions", "open", "tasks"],
  system: ["questions", "open", "tasks"],
  judge: ["open"],
  judgeMethod: ["open"],
  samples: ["open"],
  data: ["tasks", "suite"],
  shots: ["tasks"],
  chat: ["tasks"],
  smoke: ["suite"],
  results: ["tasks", "suite"],
  name: ["tasks", "suite"],
};

/** The options of a command line; the model may be missing. */
type GivenOptions = Omit<EvalOptions, "model"> & { readonly model?: string; readonly graded?: string };

/** `eval`: measures a model once, without training, or completions that another tool graded. */
export function addEval(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  program
    .command("eval")
    .description("measure a model without training: --questions (default), --tasks or --suite")
    .option("--model <folder>", "a folder, or owner/name[@revision] on the Hub")
    .option("--adapter <folder>", "a LoRA adapter in PEFT format, or owner/name")
    .option("--tokenizer <folder>", "a tokenizer that replaces the model's, or owner/name")
    .addOption(
      new Option("--questions [source]", "questions in ARC's format: a file or hf:owner/dataset").preset(
        defaultQuestions,
      ),
    )
    .option("--method <names>", "letters, cloze; with --suite, the label of the method")
    .option("--judge <name>", "judge that grades open --questions: a file, betley2025")
    .addOption(new Option("--judge-method <name>", "how it replies").choices(["json", "logprob"]))
    .option("--samples <number>", "answers per open question, or quick, standard, paper", sampleSize)
    .option("--tasks <names>", "benchmarks: arc_challenge,mmlu,gsm8k", nameList)
    .option("--suite [file]", "a suite that all methods share (default: the package's)")
    .option("--smoke", "only 10 documents per task of the suite", false)
    .option("--data <folder>", "folder with one per task (default: the Hub)")
    .option("--shots <number>", "few-shot examples (default: the task's own)", integer(0))
    .option("--limit <number>", "questions, or documents per subject (default: all)", integer(1))
    .option("--chat", "render the tasks' prompts with the chat template", false)
    .option("--system <text>", "a system prompt, empty or no_system_block", "omit")
    .option("--results <folder>", "folder of metrics.json; an interrupted run resumes")
    .option("--name <name>", "name in metrics.json (default: the model's)")
    .option("--graded <file>", "file of graded answers: print the misaligned rate")
    .addOption(engineOption().conflicts("backend"))
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action(async (options: GivenOptions, command: Command) => {
      const kind = kindOf(options, command);
      const methods = methodsOf(kind, options, command);
      checkOptions(kind, options, methods, command);
      if (kind === "graded") {
        const { evaluateGraded } = await import("./graded.ts");
        return evaluateGraded(options.graded!, options.json, terminal);
      }
      const { model } = options;
      if (model === undefined)
        return command.error(`error: required option '${flagsOf(command, "model")}' not specified`);
      const withDefaults = { questions: defaultQuestions, ...options, model };
      if (kind === "open") return evaluateAlignment(withDefaults, terminal);
      if (kind === "questions") return evaluateQuestions(withDefaults, methods, terminal);
      const registry = await loadTasks();
      checkData(withDefaults, registry, command);
      return evaluateTasks(withDefaults, registry, terminal);
    });
}

function kindOf(options: GivenOptions, command: Command): Kind {
  const passed = sources.filter((source) => options[source] !== undefined);
  if (passed.length > 1) {
    const got = passed.map((source) => `--${source}`).join(" and ");
    command.error(`error: expected one of ${sources.map((source) => `--${source}`).join(", ")}, got ${got}`);
  }
  const [kind = "questions"] = passed;
  const isOpen = options.judge !== undefined || options.questions === publishedQuestions;
  return kind === "questions" && isOpen ? "open" : kind;
}

/** Ends the command if tasks without a known dataset are named and no data. */
function checkData({ tasks = [], data }: EvalOptions, registry: TaskRegistry, command: Command): void {
  if (data !== undefined) return;
  const custom = tasks.filter((name) => Object.hasOwn(registry, name) && datasetOf(name) === null);
  if (custom.length > 0)
    command.error(
      `error: required option '${flagsOf(command, "data")}' not specified: no dataset on the hub is known for ${custom.join(", ")}`,
    );
}

/**
 * Returns the methods of --questions. Ends the command for an unknown one, or for an empty label of --suite.
 */
function methodsOf(kind: Kind, { method }: GivenOptions, command: Command): readonly QuestionMethod[] {
  if (kind === "suite" && method?.trim() === "")
    command.error(
      `error: option '${flagsOf(command, "method")}': got an empty label, expected a name such as sft`,
    );
  if (kind !== "questions" || method === undefined) return ["letters"];
  try {
    return listOf(["letters", "cloze"])(method);
  } catch (error) {
    return command.error(
      `error: option '${flagsOf(command, "method")}' argument '${method}' is invalid. ${(error as Error).message}`,
    );
  }
}

/** Ends the command for an option that does not apply. */
function checkOptions(
  kind: Kind,
  options: GivenOptions,
  methods: readonly QuestionMethod[],
  command: Command,
): void {
  for (const [name, kinds] of Object.entries(kindsOf))
    if (command.getOptionValueSource(name) === "cli" && !kinds.includes(kind))
      command.error(`error: option '${flagsOf(command, name)}' ${misplacedText(kind, kinds)}`);
  if (kind === "questions" && options.system !== "omit" && !methods.includes("letters"))
    command.error("error: option '--system <text>' is for the method letters: cloze renders no chat");
  if (kind === "tasks" || kind === "suite") checkSystemPrompt(options, command);
}

function misplacedText(kind: Kind, kinds: readonly Kind[]): string {
  if (kind === "open") return "is not for open questions, which --judge grades";
  if (kind === "graded") return "is not for graded completions";
  if (kind === "questions" && kinds.includes("open")) return "is for open questions: pass --judge too";
  const flags = new Set(kinds.map((allowed) => `--${allowed === "open" ? "questions" : allowed}`));
  const why = kind === "suite" && kinds.includes("tasks") ? ": the suite sets it for all methods" : "";
  return `is for ${[...flags].join(" and ")}, not for --${kind}${why}`;
}
