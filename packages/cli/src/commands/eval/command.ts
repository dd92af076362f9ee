import {
  evaluateAlignment,
  evaluateQuestions,
  type EvalOptions,
  type OpenQuestionOptions,
  type QuestionMethod,
} from "./questions.ts";
import { type TaskRegistry, datasetOf } from "@periodic-eval/tasks";
import { Option, type Command } from "commander";
import {
  backendOption,
  defaultQuestions,
  engineOption,
  flagsOf,
  integer,
  listOf,
  modelOption,
  nameList,
  subsampleSeedOption,
  judgeNames,
  publishedQuestions,
  sampleSize,
} from "../../config/command-options.ts";
import { checkSystemPrompt, evaluateTasks } from "./suite.ts";
import type { LoadTasks } from "../../config/open-grader.ts";
import type { Terminal } from "../../terminal/terminal.ts";

const kinds = ["questions", "tasks", "suite"] as const;
type Kind = (typeof kinds)[number];

/** Options that apply only to some kinds. */
const kindsOf: Readonly<Partial<Record<keyof EvalOptions, readonly Kind[]>>> = {
  method: ["questions", "suite"],
  limit: ["questions", "tasks"],
  subsampleSeed: ["questions"],
  system: ["questions", "tasks"],
  judge: ["questions"],
  judgeMethod: ["questions"],
  samples: ["questions"],
  data: ["tasks", "suite"],
  shots: ["tasks"],
  chat: ["tasks"],
  smoke: ["suite"],
  results: ["tasks", "suite"],
  name: ["tasks", "suite"],
};

/** `eval`: measures a model once, without training, with questions, tasks or a suite of tasks. */
export function addEval(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  addJudgeOptions(program.command("eval"))
    .description(
      "measure a model without training it, with --questions (the default), --tasks or a --suite of tasks",
    )
    .addOption(modelOption())
    .addOption(
      new Option(
        "--questions [source]",
        `questions in the ARC format: JSON Lines, Parquet, or hf:owner/dataset[/config][/split] (default: ${defaultQuestions})`,
      ).preset(defaultQuestions),
    )
    .option(
      "--method <names>",
      "with --questions: letters, cloze, or both separated by a comma (default: letters); with --suite: the label of the training method, such as sft, by which runs are compared",
    )
    .option("--tasks <names>", "benchmarks separated by commas: arc_challenge,mmlu,gsm8k", nameList)
    .option(
      "--suite [file]",
      "a suite shared by all methods (default file: mmlu, gsm8k, truthfulqa_mc2, ifeval)",
    )
    .option("--smoke", "10 documents per task of the suite; their results are kept apart", false)
    .option(
      "--data <folder>",
      "folder with one folder per task (arc_challenge/, mmlu/ …), or hf:owner/dataset (default: beside the suite, otherwise the tasks' datasets on the hub)",
    )
    .option("--adapter <folder>", "a LoRA adapter in PEFT format, or owner/name, applied to the model")
    .option("--tokenizer <folder>", "a tokenizer that replaces the model's: a folder, or owner/name")
    .option(
      "--shots <number>",
      "few-shot examples before each question (default: the task's own)",
      integer(0),
    )
    .option(
      "--limit <number>",
      "number of questions; for tasks, the first documents of each subject (default: all)",
      integer(1),
    )
    .addOption(subsampleSeedOption())
    .option("--chat", "render the tasks' prompts with the model's chat template", false)
    .option(
      "--system <text>",
      "system prompt of letters or of a chat: omit, empty, no_system_block, or the prompt",
      "omit",
    )
    .option(
      "--results <folder>",
      "folder for metrics.json and the harness's files; an interrupted run resumes there (default: results for a suite, none for tasks)",
    )
    .option("--name <name>", "name of the run in metrics.json (default: the model's)")
    .addOption(engineOption().conflicts("backend"))
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action(async (given: EvalOptions, command: Command) => {
      const options = kinds.some((kind) => given[kind] !== undefined)
        ? given
        : { ...given, questions: defaultQuestions };
      if (asksOpenQuestions(options, command)) {
        return evaluateAlignment(options, terminal);
      }
      const kind = kindOf(options, command);
      const methods = methodsOf(kind, options, command);
      checkOptions(kind, options, methods, command);
      if (kind === "questions") {
        await evaluateQuestions(options, methods, terminal);
      } else {
        const registry = await loadTasks();
        await checkData(options, registry, command);
        await evaluateTasks(options, registry, terminal);
      }
    });
}

function kindOf(options: EvalOptions, command: Command): Kind {
  const given = kinds.filter((kind) => options[kind] !== undefined);
  if (given.length !== 1) {
    const got = given.map((kind) => `--${kind}`).join(" and ");
    command.error(`error: expected one of --questions, --tasks and --suite, got ${got}`);
  }
  return given[0]!;
}

/** Ends the command if tasks without a known dataset are named and no data. */
async function checkData(
  { tasks = [], data }: EvalOptions,
  registry: TaskRegistry,
  command: Command,
): Promise<void> {
  if (data !== undefined || tasks.length === 0) return;
  const custom = tasks.filter((name) => Object.hasOwn(registry, name) && datasetOf(name) === null);
  if (custom.length > 0)
    command.error(
      `error: required option '${flagsOf(command, "data")}' not specified: no dataset on the hub is known for ${custom.join(", ")}`,
    );
}

/**
 * Returns the methods of --questions. Ends the command for an unknown one, or for an empty label of --suite.
 */
function methodsOf(kind: Kind, { method }: EvalOptions, command: Command): readonly QuestionMethod[] {
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

function checkOptions(
  kind: Kind,
  options: EvalOptions,
  methods: readonly QuestionMethod[],
  command: Command,
): void {
  for (const [name, kinds] of Object.entries(kindsOf)) {
    if (command.getOptionValueSource(name) !== "cli" || kinds.includes(kind)) continue;
    const why = kind === "suite" && kinds.includes("tasks") ? ": the suite sets it for all methods" : "";
    command.error(
      `error: option '${flagsOf(command, name)}' is for ${kinds.map((one) => `--${one}`).join(" and ")}, not for --${kind}${why}`,
    );
  }
  if (kind === "questions") {
    if (options.system !== "omit" && !methods.includes("letters"))
      command.error("error: option '--system <text>' is for the method letters: cloze renders no chat");
    return;
  }
  checkSystemPrompt(options, command);
}

/** Options of `eval` that apply to open questions. */
const allowed = [
  "model",
  "adapter",
  "tokenizer",
  "questions",
  "judge",
  "judgeMethod",
  "samples",
  "limit",
  "system",
  "backend",
  "json",
];

const addJudgeOptions = (command: Command): Command =>
  command
    .option(
      "--judge <name>",
      `measure alignment: this judge grades answers to --questions, which are betley2025 or a file of open questions (without a source: eight of our own): ${judgeNames} (default for betley2025: JUDGE_MODEL)`,
    )
    .addOption(
      new Option(
        "--judge-method <name>",
        "how a judge model replies (default: logprob for betley2025, otherwise json)",
      ).choices(["json", "logprob"]),
    )
    .option(
      "--samples <number>",
      "answers per open question: a number, quick (5), standard (20) or paper (100) (default: quick)",
      sampleSize,
    );

/**
 * Whether the options measure alignment: they name a judge, or published questions. Ends the command for an option that does
 * not apply.
 */
function asksOpenQuestions(
  options: OpenQuestionOptions & Readonly<Partial<Record<"questions" | "tasks" | "suite", unknown>>>,
  command: Command,
): boolean {
  const { questions, tasks, suite, judge } = options;
  if (questions === undefined || tasks !== undefined || suite !== undefined) return false;
  const given = command.options
    .map((option) => option.attributeName())
    .filter((name) => command.getOptionValueSource(name) === "cli");
  if (judge === undefined && questions !== publishedQuestions) {
    const judged = given.find((name) => name === "judgeMethod" || name === "samples");
    if (judged !== undefined)
      command.error(`error: option '${flagsOf(command, judged)}' is for open questions: pass --judge too`);
    return false;
  }
  const other = given.find((name) => !allowed.includes(name));
  if (other !== undefined)
    command.error(
      `error: option '${flagsOf(command, other)}' is not for open questions, which --judge grades`,
    );
  return true;
}
