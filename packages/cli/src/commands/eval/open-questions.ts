import { Option, type Command } from "commander";
import { flagsOf, judgeNames, publishedQuestions, sampleSize } from "../../config/command-options.ts";

/** Options of `eval` for open questions, which a judge grades. */
export interface OpenQuestionOptions {
  readonly judge?: string;
  readonly judgeMethod?: "json" | "logprob";
  readonly samples?: ReturnType<typeof sampleSize>;
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

export const addJudgeOptions = (command: Command): Command =>
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
export function asksOpenQuestions(
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
