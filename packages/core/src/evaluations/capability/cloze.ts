import {
  type Json,
  type BulkTokenizer,
  type EvaluableModel,
  type MeasurementWarning,
} from "@periodic-eval/contracts";
import { dataError, quoteValue } from "@periodic-eval/contracts/options";
import { encodePairs } from "../../model/encode-pair.ts";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import { checkLength } from "../prompting/completions.ts";
import { cutPromptWarnings } from "../prompting/answer-warnings.ts";
import type { ArcQuestion } from "@periodic-eval/data";
import { type QuestionSource, questionWarnings } from "./question-file.ts";
import {
  predictChoice,
  scoreChoices,
  choiceFields,
  choiceMetrics,
  choicePlainKeys,
  scored,
  type ChoiceRow,
} from "./metrics.ts";

/** A row of `cloze`: `predicted` and `correct` by Σ log p, the fields below by Σ log p per code point. */
export interface ClozeRow extends ChoiceRow {
  /** The label with the highest log p per code point of its choice, the first of equal ones. */
  readonly predictedNorm: string;
  readonly correctNorm: boolean;
}

/**
 * Scores every choice as the continuation of `Question: …\nAnswer:`, as lm-evaluation-harness 0.4.13 does for `arc_challenge`
 * 1.0: `accuracy` (its `acc`) takes the highest Σ log p, `acc_norm` the highest Σ log p per code point of the choice. Uses no
 * chat template: it measures what the model knows whether or not the model still answers in the trained format.
 */
export function cloze({ questions }: { readonly questions: QuestionSource }) {
  let provenance: Json = null;
  let ofQuestions: readonly MeasurementWarning[] = [];
  return defineEvaluation({
    name: "capability",
    version: "cloze-1",
    needs: ["logLikelihoods"],
    wants: ["tokenizer"],
    async items({
      tokenizer,
      contextLength,
    }: Pick<EvaluableModel, "identity" | "tokenizer" | "contextLength">): Promise<readonly ArcQuestion[]> {
      const { items, repeated, provenance: source } = await questions();
      ofQuestions = questionWarnings(items, repeated, ["choice"]);
      // Before step 1 instead of in every measurement: unknown characters, and choices that no context has room for.
      if (tokenizer !== undefined) await checkFit(items, tokenizer, contextLength);
      const example = items[0] === undefined ? null : contextOf(items[0]);
      provenance = { method: "cloze", ...source, example_prompt: example };
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
            prompt: contextOf(item),
            predictedNorm,
            correctNorm: predictedNorm === item.gold,
          };
        });
      }),
    prompts: (_, items) => items.map((item) => ({ text: contextOf(item) })),
    answers: choiceFields,
    metrics: (kit) => ({
      ...choiceMetrics(kit),
      acc_norm: kit.rate((row) => row.correctNorm, { higherIsBetter: true }),
    }),
    warnings: (rows) => [...ofQuestions, ...cutPromptWarnings(rows)],
    plainKeys: choicePlainKeys,
  });
}

/** Returns the text before the choice. The continuation starts with a space. */
const contextOf = ({ question }: ArcQuestion) => `Question: ${question}\nAnswer:`;

/** @throws PeriodicEvalError `data` for a choice, or a question with its longest choice, that has more tokens than the model reads. */
async function checkFit(
  items: readonly ArcQuestion[],
  tokenizer: BulkTokenizer,
  contextLength: number | null,
): Promise<void> {
  const requests = items.flatMap((item) => {
    const context = { text: contextOf(item) };
    return item.choices.map((choice) => ({ context, continuation: ` ${choice}` }));
  });
  const pairs = (await encodePairs(tokenizer, requests)).values();
  for (const item of items) {
    const encoded = item.choices.map(() => pairs.next().value!);
    const lengths = encoded.map(({ continuation }) => continuation.length);
    const longest = Math.max(...lengths);
    if (contextLength !== null && longest > contextLength) {
      const got = `the choice ${quoteValue(item.choices[lengths.indexOf(longest)])} of ${longest} tokens`;
      const expected = `at most ${contextLength} tokens, the model's context length`;
      const fix = "Shorten or remove the question, or use a model with a longer context.";
      throw dataError(`question "${item.id}"`, got, expected, fix);
    }
    // The last token of a choice is scored but never read.
    const tokens = encoded.map(({ context, continuation }) => context.length + continuation.length - 1);
    checkLength(item.id, Math.max(...tokens), contextLength, "capability");
  }
}
