import type { Metric, MetricKit, Row } from "@periodic-eval/core";
import { multipleChoiceEvaluation, type MultipleChoiceRow } from "../families/multiple-choice.ts";
import { choiceDelimiter } from "./harness-prompt.ts";
import { checkTaskOptions } from "./task-options.ts";
import type { ChoicesItem } from "../families/choices.ts";
import type { SampledTask } from "./task.ts";
import { documentsOnce, sampleOf, type TaskDocument, type TaskReading } from "./task-documents.ts";

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
export function choiceTask({ name, version, metrics, ...reading }: ChoiceTask): SampledTask {
  const defaultShots = 0;
  return {
    name,
    version,
    defaultShots,
    settings: { output_type: "multiple_choice" },
    // Of several right ones lm-evaluation-harness names the first.
    sample: (_, item) => ({ ...sampleOf(item), target: (item as ChoicesItem<Row>).gold[0]! }),
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
