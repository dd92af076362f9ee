import {
  type Json,
  type BulkTokenizer,
  type EvaluableModel,
  type MeasurementWarning,
} from "@periodic-eval/contracts";
import { configError, dataError, quoteValue } from "@periodic-eval/contracts/options";
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
  chanceWarnings,
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
  let ofQuestions: readonly MeasurementWarning[] = [];
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
      contextLength,
    }: Pick<EvaluableModel, "identity" | "tokenizer" | "contextLength">): Promise<readonly ArcQuestion[]> {
      const { items, repeated, provenance: source } = await questions();
      ofQuestions = questionWarnings(items, repeated, ["choice"]);
      const drawn = await shots?.();
      pool = drawn?.pool ?? [];
      count = drawn?.count ?? 0;
      for (const item of items) {
        const available = examplesFor(item, pool, count).length;
        if (available < count) throw tooFewExamples(item.id, available, count);
      }
      // Before step 1 instead of in every measurement: unknown characters, and choices that no context has room for.
      if (tokenizer !== undefined) await checkFit(items, tokenizer, contextLength);
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
            ...(count === 0 && { prompt: contextOf(item) }),
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
    warnings: (rows) => [
      ...ofQuestions,
      ...chanceWarnings(rows),
      ...cutPromptWarnings(rows, { metrics: null, losesQuestion: count === 0 }),
    ],
    plainKeys: choicePlainKeys,
  });
}

/** Returns the text before the choice, examples first. The continuation starts with a space. */
export function clozeContext(item: ArcQuestion, examples: readonly ArcQuestion[]): string {
  const ask = ({ question }: ArcQuestion) => `Question: ${question}\nAnswer:`;
  const shown = examples.map((row) => `${ask(row)} ${row.choices[row.labels.indexOf(row.gold)]}\n\n`);
  return `${shown.join("")}${ask(item)}`;
}

const examplesFor = (item: ArcQuestion, pool: readonly ArcQuestion[], count: number) =>
  pool.filter(({ id }) => id !== item.id).slice(0, count);

/**
 * Only examples may be cut.
 *
 * @throws PeriodicEvalError `data` for a choice, or a question with its longest choice, that has more tokens than the model reads.
 */
async function checkFit(
  items: readonly ArcQuestion[],
  tokenizer: BulkTokenizer,
  contextLength: number | null,
): Promise<void> {
  const requests = items.flatMap((item) => {
    const context = { text: clozeContext(item, []) };
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

/** Returns the error for a question that has fewer examples than `count` because the pool contains it. */
const tooFewExamples = (id: string, available: number, count: number) =>
  configError({
    where: "capability options",
    path: ["shots"],
    got: `${available} examples for question ${id}, which is itself in the pool`,
    expected: `${count} examples besides the question`,
    fix: "Name a larger pool, or one that does not contain the questions.",
  });
