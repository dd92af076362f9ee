import type { Grader, Verdict } from "@periodic-eval/core";
import { filledString, functionSchema, isRecord, parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";

/** A pipeline of `@huggingface/transformers` for `text-classification`. */
export type TextClassifier = (texts: string[], options: { top_k: number }) => Promise<unknown>;

export interface ClassifierGraderOptions {
  readonly classifier: TextClassifier;
  /** Names the classifier in snapshots: its source, with the revision. */
  readonly name: string;
  /** The class that the score is the probability of, such as `REJECTION`. */
  readonly label: string;
  /** Name of the score. Default `refusal`. */
  readonly score?: string;
}

const optionsSchema = z.strictObject({
  classifier: functionSchema<TextClassifier>('a pipeline: await pipeline("text-classification", …)'),
  name: filledString("the source of the classifier"),
  label: filledString("the name of a class"),
  score: filledString("the name of a score").optional(),
} satisfies Record<keyof ClassifierGraderOptions, z.ZodType>);

/** Answers of one pass: padded together, as the pipeline does. */
const batchSize = 16;
/** More classes than classifiers have, so that the pipeline returns them all. */
const allClasses = 1000;

/**
 * Returns a grader whose score is 100 times the probability of a class, from a classifier of `@huggingface/transformers`. It reads the
 * answer without its question. Whoever made the pipeline disposes it.
 *
 * @throws PeriodicEvalError `config` for a wrong option. An answer whose classes lack the label has the verdict `error`.
 */
export function classifierGrader(options: ClassifierGraderOptions): Grader {
  const parsed = parseOptions("classifierGrader options", optionsSchema, options);
  const { classifier, name, label, score = "refusal" } = parsed;
  return {
    name,
    fingerprint: `classifier:${name}:${label}`,
    async grade(requests, { signal }) {
      const verdicts: Verdict[] = [];
      for (let from = 0; from < requests.length; from += batchSize) {
        signal.throwIfAborted();
        const texts = requests.slice(from, from + batchSize).map(({ answer }) => answer);
        const classes = await classifier(texts, { top_k: allClasses });
        verdicts.push(
          ...texts.map((_, at) => verdictOf(Array.isArray(classes) ? classes[at] : null, label, score)),
        );
      }
      return verdicts;
    },
  };
}

function verdictOf(classes: unknown, label: string, score: string): Verdict {
  const all = Array.isArray(classes) ? classes.filter(isRecord) : [];
  const probability = all.find((entry) => entry["label"] === label)?.["score"];
  const raw = JSON.stringify(classes);
  if (typeof probability !== "number") return { status: "error", raw: `no class "${label}" in ${raw}` };
  return { status: "graded", scores: { [score]: 100 * probability }, raw };
}
