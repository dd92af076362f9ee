import type { Metric, MetricKit } from "@periodic-eval/core";
import { multipleChoiceEvaluation, type MultipleChoiceRow } from "../families/multiple-choice.ts";
import { choiceDelimiter } from "./harness-prompt.ts";
import { checkTaskOptions } from "./options.ts";
import { documentsOnce, type TaskDocument, type TaskReading } from "./task-documents.ts";
import type { Task } from "./types.ts";

/** A question with choices, as a task reads it from a row. */
export interface ChoiceQuestion {
  readonly question: string;
  readonly choices: readonly string[];
  /** Index of the right choice, or those of all that are right. */
  readonly gold: number | readonly number[];
}

export interface ChoiceTask extends Omit<TaskReading<ChoiceQuestion>, "task" | "answer"> {
  readonly name: string;
  readonly version: string;
  readonly metrics: (
    kit: MetricKit<MultipleChoiceRow>,
  ) => Readonly<Record<string, Metric<MultipleChoiceRow>>>;
}

/** A task whose choices are compared by their log-likelihoods; in an example stands the first right one. */
export function choiceTask({ name, version, metrics, ...reading }: ChoiceTask): Task {
  const defaultShots = 0;
  return {
    name,
    version,
    defaultShots,
    settings: { output_type: "multiple_choice" },
    open(options) {
      checkTaskOptions(name, options);
      const { shots = defaultShots, subsample, chat } = options;
      const answer = ({ choices, gold }: ChoiceQuestion) => choices[[gold].flat()[0]!]!;
      return multipleChoiceEvaluation<TaskDocument<ChoiceQuestion>>({
        name,
        version,
        documents: documentsOnce({ ...reading, task: name, answer }, options, shots),
        ...(subsample !== undefined && { subsample }),
        by: ({ groups }) => groups,
        prompt: ({ prompt }) => prompt,
        choices: ({ question }) => question.choices,
        gold: ({ question }) => question.gold,
        delimiter: choiceDelimiter(chat),
        metrics,
      });
    },
  };
}
