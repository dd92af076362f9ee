import { configError } from "@periodic-eval/contracts/options";
import type { Json, Metric, MetricKit, Row } from "@periodic-eval/core";
import { multipleChoiceEvaluation, type MultipleChoiceRow } from "../families/multiple-choice.ts";
import {
  choiceDelimiter,
  documentsOnce,
  sampleOf,
  sourcesOf,
  type TaskDocument,
  type TaskReading,
} from "./task-documents.ts";
import { rolloutEvaluation, type RolloutItem, type ScoredRolloutRow } from "../families/rollout.ts";
import type { ChoicesItem } from "../families/choices.ts";
import { checkTaskOptions, type SampledTask } from "./task.ts";

/** A multiple-choice question that a task has read from a row. */
export interface ChoiceQuestion {
  readonly question: string;
  readonly choices: readonly string[];
  /** The index of the right choice, or the indices of all right choices. */
  readonly gold: number | readonly number[];
}

export interface ChoiceTask extends Omit<TaskReading<ChoiceQuestion>, "task" | "answer"> {
  readonly name: string;
  readonly version: string;
  readonly metrics: (
    kit: MetricKit<MultipleChoiceRow>,
  ) => Readonly<Record<string, Metric<MultipleChoiceRow>>>;
}

/** Returns a task that compares choices by log-likelihood. Few-shot examples show the first right choice. */
export function choiceTask({ name, version, metrics, ...reading }: ChoiceTask): SampledTask {
  const defaultShots = 0;
  return {
    name,
    version,
    defaultShots,
    settings: { output_type: "multiple_choice" },
    // lm-evaluation-harness names the first of several right choices.
    sample: (_, item) => ({ ...sampleOf(item), target: (item as ChoicesItem<Row>).gold[0]! }),
    sources: (options) =>
      sourcesOf({ task: name, parts: reading.parts }, options, options.shots ?? defaultShots),
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

export interface GenerationTask<Q, S extends Json> extends Omit<TaskReading<Q>, "task" | "answer"> {
  readonly name: string;
  readonly version: string;
  readonly defaultShots: number;
  readonly maxNewTokens: number;
  readonly stop: readonly string[];
  /** Further settings that results list. */
  readonly settings?: Readonly<Record<string, Json>>;
  /** Returns the answer as it appears in an example; null for a task whose prompts have no reference answers. */
  readonly answer: TaskReading<Q>["answer"] | null;
  /** Returns the target in lm-evaluation-harness' samples. */
  readonly target: (question: Q) => Json;
  readonly score: (question: Q, text: string) => S;
  readonly metrics: (
    kit: MetricKit<ScoredRolloutRow<S>>,
  ) => Readonly<Record<string, Metric<ScoredRolloutRow<S>>>>;
}

/** Returns a task that scores greedy completions. A prompt that does not fit is cut on its left. */
export function generationTask<Q, S extends Json>({
  name,
  version,
  defaultShots,
  maxNewTokens,
  stop,
  settings,
  answer,
  target,
  score,
  metrics,
  ...rest
}: GenerationTask<Q, S>): SampledTask {
  const reading: TaskReading<Q> = { ...rest, task: name, answer: answer ?? (() => "") };
  return {
    name,
    version,
    defaultShots,
    settings: {
      output_type: "generate_until",
      max_gen_toks: maxNewTokens,
      until: [...stop],
      do_sample: false,
      temperature: 0,
      ...settings,
    },
    sample: (_, item) => ({
      ...sampleOf(item),
      target: target((item as RolloutItem<TaskDocument<Q>>).document.question),
    }),
    sources: (options) => sourcesOf(reading, options, options.shots ?? defaultShots),
    open(options) {
      checkTaskOptions(name, options);
      const { shots = defaultShots, subsample } = options;
      if (answer === null && shots > 0)
        throw configError({
          where: `${name} options`,
          path: ["shots"],
          value: shots,
          expected: "0, because the task's prompts have no reference answers to show as examples",
          fix: "Leave it out.",
        });
      return rolloutEvaluation<TaskDocument<Q>, S>({
        name,
        version,
        documents: documentsOnce(reading, options, shots),
        ...(subsample !== undefined && { subsample }),
        prompt: ({ prompt }) => prompt,
        maxNewTokens,
        ...(stop.length > 0 && { stop }),
        overflow: "left",
        score: ({ question }, text) => score(question, text),
        metrics,
      });
    },
  };
}
