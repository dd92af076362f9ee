import type { Json } from "../../contracts/json.ts";
import type { EvaluableModel } from "../../contracts/model.ts";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import type { ArcQuestion } from "./arc-questions.ts";
import type { QuestionSource } from "./question-file.ts";
import { predictChoice, scoreChoices } from "./choice-scores.ts";
import { choiceMetrics, choicePlainKeys, scored, type ChoiceRow } from "./metrics.ts";
import { tooFewExamples } from "./options.ts";

/** A row of `cloze`: `predicted` and `correct` by Σ log p, the fields below by Σ log p per code point. */
export interface ClozeRow extends ChoiceRow {
  /** The label with the highest log p per code point of its choice, the first of equal ones. */
  readonly predictedNorm: string;
  readonly correctNorm: boolean;
}

export interface ClozeOptions {
  readonly questions: QuestionSource;
  /** Few-shot examples before the question, in their order. A question is never its own example. */
  readonly shots?: () => Promise<{
    readonly pool: readonly ArcQuestion[];
    readonly count: number;
    readonly provenance: Json;
  }>;
}

/**
 * Scores every choice as the continuation of `Question: …\nAnswer:`, as lm-evaluation-harness 0.4.13 does for `arc_challenge`
 * 1.0: `accuracy` (its `acc`) takes the highest Σ log p, `acc_norm` the highest Σ log p per code point of the choice. Uses no
 * chat template: it measures what the model knows whether or not the model still answers in the trained format.
 * Deviation: all questions have the same few-shot examples; the harness samples them per question.
 */
export function cloze({ questions, shots }: ClozeOptions) {
  let provenance: Json = null;
  let pool: readonly ArcQuestion[] = [];
  let count = 0;
  const contextOf = (item: ArcQuestion) => clozeContext(item, examplesFor(item, pool, count));
  return defineEvaluation({
    name: "capability",
    version: "cloze-1",
    needs: ["logLikelihoods"],
    wants: ["tokenizer"],
    async items({
      tokenizer,
    }: Pick<EvaluableModel, "identity" | "tokenizer">): Promise<readonly ArcQuestion[]> {
      const { items, provenance: source } = await questions();
      const drawn = await shots?.();
      pool = drawn?.pool ?? [];
      count = drawn?.count ?? 0;
      for (const item of items) {
        const found = examplesFor(item, pool, count).length;
        if (found < count) throw tooFewExamples(item.id, found, count);
        // A tokenizer of characters throws for unknown ones: before step 1 instead of in every measurement.
        tokenizer?.encode([contextOf(item), ...item.choices].join(" "));
      }
      const example = items[0] === undefined ? null : contextOf(items[0]);
      provenance = { method: "cloze", shots: drawn?.provenance ?? null, ...source, example_prompt: example };
      return items;
    },
    provenance: () => provenance,
    measure: (model, items, context) =>
      measureInBatches(items, context, async (batch) => {
        const requests = batch.map((item) => ({
          id: item.id,
          context: { text: contextOf(item) },
          continuations: item.choices.map((choice) => ` ${choice}`),
        }));
        const scores = await scoreChoices(model, requests, { signal: context.signal });
        return batch.map((item, at): ClozeRow => {
          const predicted = predictChoice(scores[at]!.nats, item.choices);
          const predictedNorm = item.labels[predicted.perCodePoint]!;
          return {
            ...scored(item, predicted.bySum, scores[at]!),
            predictedNorm,
            correctNorm: predictedNorm === item.gold,
          };
        });
      }),
    prompts: (_, items) => items.map((item) => ({ text: contextOf(item) })),
    metrics: (kit) => ({
      ...choiceMetrics(kit),
      acc_norm: kit.rate((row) => row.correctNorm, { higherIsBetter: true }),
    }),
    plainKeys: choicePlainKeys,
  });
}

/** Returns the text before the choice, examples first. The continuation starts with a space. */
export function clozeContext(item: ArcQuestion, examples: readonly ArcQuestion[]): string {
  const ask = ({ question }: ArcQuestion) => `Question: ${question}\nAnswer:`;
  const shown = examples.map((one) => `${ask(one)} ${one.choices[one.labels.indexOf(one.gold)]}\n\n`);
  return `${shown.join("")}${ask(item)}`;
}

const examplesFor = (item: ArcQuestion, pool: readonly ArcQuestion[], count: number) =>
  pool.filter(({ id }) => id !== item.id).slice(0, count);
