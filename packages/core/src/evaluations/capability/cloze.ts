import { PeriodicEvalError } from "../../errors.ts";
import { defineEvaluation } from "../kit/define.ts";
import type { Json } from "../../contracts/json.ts";
import type { ArcQuestion } from "./arc-questions.ts";
import { choiceMetrics, choicePlainKeys, scored, type ChoiceRow } from "./row.ts";
import { indexOfHighest, perCodePoint, scoreChoices } from "./choice-scores.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import type { QuestionSource } from "./question-file.ts";

/** A cloze row: `predicted` and `correct` by the sum; these by the sum over code points. */
export interface ClozeRow extends ChoiceRow {
  /** The label with the highest log p per code point of its choice, the first of equals. */
  readonly predictedNorm: string;
  readonly correctNorm: boolean;
}

export interface ClozeOptions {
  readonly questions: QuestionSource;
  /** Examples before the question, in their order; an item that is itself an example is left out of its own. */
  readonly shots?: () => Promise<{
    readonly pool: readonly ArcQuestion[];
    readonly count: number;
    readonly provenance: Json;
  }>;
}

/**
 * Scores every choice as the continuation of `Question: …\nAnswer:`, as lm-evaluation-harness 0.4.13 does for
 * `arc_challenge` 1.0: `accuracy` (its `acc`) takes the highest Σ log p, `acc_norm` the highest Σ log p per code point of the
 * choice. No chat template: it measures what the model knows whether or not it still talks in the trained form.
 * Deviation: with k shots the examples are the same for all questions (the harness draws anew for each).
 */
export function cloze({ questions, shots }: ClozeOptions) {
  let provenance: Json = null;
  let pool: readonly ArcQuestion[] = [];
  let count = 0;
  return defineEvaluation({
    name: "capability",
    version: "cloze-1",
    needs: ["logLikelihoods"],
    async items(): Promise<readonly ArcQuestion[]> {
      const { items, provenance: source } = await questions();
      const drawn = await shots?.();
      pool = drawn?.pool ?? [];
      count = drawn?.count ?? 0;
      for (const item of items) checkExamples(item, pool, count);
      const example =
        items[0] === undefined ? null : clozeContext(items[0], examplesFor(items[0], pool, count));
      provenance = { method: "cloze", shots: drawn?.provenance ?? null, ...source, example_prompt: example };
      return items;
    },
    provenance: () => provenance,
    measure: (model, items, context) =>
      measureInBatches(items, context, async (some) => {
        const asked = some.map((item) => ({
          context: { text: clozeContext(item, examplesFor(item, pool, count)) },
          continuations: item.choices.map((choice) => ` ${choice}`),
        }));
        const answers = await scoreChoices(model, asked, { signal: context.signal });
        return some.map((item, at): ClozeRow => {
          const own = answers[at]!;
          const nats = own.map(({ sumNats }) => sumNats);
          const row = scored(item, nats, Math.max(...own.map(({ truncatedTokens }) => truncatedTokens)));
          const predictedNorm = item.labels[indexOfHighest(perCodePoint(nats, item.choices))]!;
          return { ...row, predictedNorm, correctNorm: predictedNorm === item.gold };
        });
      }),
    prompts: (_, items) =>
      items.map((item) => ({ text: clozeContext(item, examplesFor(item, pool, count)) })),
    metrics: (kit) => ({
      ...choiceMetrics(kit),
      acc_norm: kit.rate((row) => row.correctNorm, { higherIsBetter: true }),
    }),
    plainKeys: choicePlainKeys,
  });
}

/** The text before the choice, examples first. The continuation then starts with a space. */
export function clozeContext(item: ArcQuestion, examples: readonly ArcQuestion[]): string {
  const ask = ({ question }: ArcQuestion) => `Question: ${question}\nAnswer:`;
  const shown = examples.map((one) => `${ask(one)} ${one.choices[one.labels.indexOf(one.gold)]}\n\n`);
  return `${shown.join("")}${ask(item)}`;
}

function examplesFor(item: ArcQuestion, pool: readonly ArcQuestion[], count: number): readonly ArcQuestion[] {
  return pool.filter(({ id }) => id !== item.id).slice(0, count);
}

function checkExamples(item: ArcQuestion, pool: readonly ArcQuestion[], count: number): void {
  const found = examplesFor(item, pool, count).length;
  if (found === count) return;
  throw new PeriodicEvalError({
    code: "config",
    where: "capability.shots",
    got: `${found} examples for question ${item.id}, which is itself in the pool`,
    expected: `${count} examples besides the question`,
    fix: "Name a larger pool, or one that the questions are not in.",
  });
}
