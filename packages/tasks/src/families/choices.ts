import type { AnswerFields, Json, Metric, MetricKit, Prompt, Row } from "@periodic-eval/core";
import { dataError, isCount, quoteValue } from "@periodic-eval/contracts/options";
import {
  encodePairs,
  measureInBatches,
  scoreChoices,
  truncatedRows,
  type ChoiceScores,
} from "@periodic-eval/core/evaluations";
import type * as z from "zod";
import { familyOf } from "./evaluate.ts";
import {
  documentFunction,
  familyParts,
  promptOf,
  type PromptInput,
  type Family,
  type FamilyItem,
  type FamilyOptions,
  type FamilyRow,
  sequenceOf,
} from "./family.ts";
import { firstText, fitPrompts, type TokenizingModel } from "./fit-prompt.ts";

/** Options of the families whose documents have choices that continue a prompt. */
export interface ChoicesOptions<D extends Row> extends FamilyOptions<D> {
  readonly prompt: (document: D) => PromptInput;
  /** One or more non-empty strings. */
  readonly choices: (document: D) => readonly string[];
  /** The index of the right choice, or the indices of all right choices. */
  readonly gold: (document: D) => number | readonly number[];
}

export interface ChoicesItem<D> extends FamilyItem<D> {
  readonly prompt: Prompt;
  readonly choices: readonly string[];
  /** The scored strings: the delimiter followed by each choice. */
  readonly continuations: readonly string[];
  /** Indices of the right choices, one or more. */
  readonly gold: readonly number[];
}

/** The result of one document; C choices. */
export interface ChoicesRow extends FamilyRow {
  /** `template_failure`: the chat could not be rendered and was not scored. */
  readonly status: "scored" | "template_failure";
  readonly gold: readonly number[];
  /** Σ log p of each choice, [C]; null if not scored, like the fields that derive from it. */
  readonly nats: readonly number[] | null;
  /** Tokens of each choice, [C]. */
  readonly tokens: readonly number[] | null;
  /** Whether every token of a choice was the most likely one, [C]; null if the engine does not report it. */
  readonly isGreedy: readonly (boolean | null)[] | null;
  /** Tokens of the prompt cut on the left to fit the model; the maximum over choices; null if the engine does not report it. */
  readonly truncatedTokens: number | null;
  /** Why the document was not scored. */
  readonly reason?: string;
}

/** The prediction that a family derives from the scores. */
export interface ChoiceVerdict {
  /** The index of the best choice, the first of ties; null if not scored. */
  readonly predicted: number | null;
  readonly correct: boolean | null;
}

export interface ChoicesFamily<D extends Row, V extends ChoiceVerdict> {
  /** The function's name, for errors. */
  readonly where: string;
  readonly options: ChoicesOptions<D>;
  /** Schemas of the options that only this family has. */
  readonly ownShape: z.ZodRawShape;
  /** The string between prompt and choice. */
  readonly delimiter: string;
  /** Those of its options that change a number, for provenance. */
  readonly how: Readonly<Record<string, Json>>;
  /** Receives null if the document was not scored. */
  readonly judge: (item: ChoicesItem<D>, scores: ChoiceScores | null) => V;
  readonly metrics: (kit: MetricKit<ChoicesRow & V>) => Readonly<Record<string, Metric<ChoicesRow & V>>>;
}

/** Returns an evaluation that compares continuations of a prompt by their log-likelihoods. */
export function choicesFamily<D extends Row, V extends ChoiceVerdict>({
  where,
  options,
  ownShape,
  delimiter,
  how,
  judge,
  metrics,
}: ChoicesFamily<D, V>): Family<D, ChoicesItem<D>, ChoicesRow & V, "logLikelihoods"> {
  const parts = familyParts(where, options, {
    prompt: documentFunction,
    choices: documentFunction,
    gold: documentFunction,
    ...ownShape,
  });
  return familyOf(parts.common, {
    needs: ["logLikelihoods"],
    wants: ["tokenizer"],
    async items(model) {
      const items = (await parts.items()).map((item): ChoicesItem<D> => {
        const { document } = item;
        const [choices, gold] = [options.choices(document), [options.gold(document)].flat()];
        checkChoices(`${parts.name} document "${item.id}"`, choices, gold);
        const continuations = choices.map((choice) => `${delimiter}${choice}`);
        return { ...item, prompt: promptOf(options.prompt(document)), choices, continuations, gold };
      });
      const example = await firstText(parts.name, model, items, { budget: null, overflow: "report" });
      parts.describe({ delimiter, ...how }, example);
      return items;
    },
    prompts: (_, items) => items.map(({ prompt }) => prompt),
    async measure(model, items, context, onSequence) {
      const failures = await templateFailures(model, items);
      return measureInBatches(items, context, async (some) => {
        const ready = some.map((item) => ({ item, reason: failures.get(item) ?? null }));
        const asked = ready.filter(({ reason }) => reason === null);
        const answers = await scoreChoices(
          model,
          asked.map(({ item: { id, prompt, continuations } }) => ({ id, context: prompt, continuations })),
          { signal: context.signal },
        );
        const next = answers.values();
        const preferred: { id: string; context: Prompt; continuation: string }[] = [];
        const rows = ready.map(({ item, reason }): ChoicesRow & V => {
          const { id, groups, gold } = item;
          const row = { id, item: id, groups, gold };
          if (reason !== null)
            return { ...row, ...unscored, status: "template_failure", reason, ...judge(item, null) };
          const scores = next.next().value!;
          const verdict = judge(item, scores);
          const continuation = item.continuations[verdict.predicted!]!;
          preferred.push({ id, context: item.prompt, continuation });
          return { ...row, status: "scored", ...scores, ...verdict };
        });
        if (onSequence !== undefined) {
          // `evaluate` requires a tokenizer.
          const pairs = await encodePairs((model as TokenizingModel).tokenizer!, preferred);
          for (const [at, { context: before, continuation }] of pairs.entries())
            onSequence(preferred[at]!.id, sequenceOf(before, continuation));
        }
        return rows;
      });
    },
    answers: answerFields,
    metrics: (kit) => parts.metrics(kit, {}, metrics),
    plainKeys(_, rows) {
      const count = (is: (row: ChoicesRow & V) => boolean) => rows.filter(is).length;
      return {
        correct: count(({ correct }) => correct === true),
        total: count(({ status }) => status === "scored"),
        template_failures: count(({ status }) => status === "template_failure"),
        truncated: truncatedRows(rows),
      };
    },
  });
}

const unscored = { nats: null, tokens: null, isGreedy: null, truncatedTokens: 0 };

/** Returns why chats cannot be rendered, for those that cannot; nothing without a tokenizer. */
async function templateFailures<I extends { readonly prompt: Prompt }>(
  model: TokenizingModel,
  items: readonly I[],
): Promise<ReadonlyMap<I, string>> {
  const chats = items.filter(({ prompt }) => "messages" in prompt);
  if (chats.length === 0) return new Map();
  const prompts = chats.map(({ prompt }) => prompt);
  const fitted = await fitPrompts(model, prompts, { budget: null, overflow: "report" });
  return new Map(
    chats.flatMap((item, at) => {
      const result = fitted[at]!;
      return "reason" in result ? [[item, result.reason] as const] : [];
    }),
  );
}

function checkChoices(where: string, choices: readonly string[], gold: readonly number[]): void {
  const fix = "Correct the document, or leave it out.";
  const isFilled = (choice: unknown) => typeof choice === "string" && choice !== "";
  if (!Array.isArray(choices) || choices.length === 0 || !choices.every(isFilled))
    throw dataError(where, `choices ${quoteValue(choices)}`, "one or more non-empty strings", fix);
  const isIndex = (at: unknown) => isCount(at) && at < choices.length;
  if (gold.length > 0 && gold.every(isIndex)) return;
  const got = `gold ${quoteValue(gold)} for ${choices.length} choices`;
  throw dataError(where, got, "one or more indices of choices, from 0", fix);
}

/** The fields of a row that the page shows. */
const answerFields: AnswerFields = {
  reply: "reason",
  choices: { nats: "nats", gold: "gold", predicted: "predicted" },
  flags: [
    { name: "wrong", any: [{ correct: { is: [false] } }] },
    { name: "ungraded", any: [{ status: { is: ["template_failure"] } }] },
    { name: "truncated", any: [{ truncatedTokens: { above: 0 } }] },
  ],
  tokens: { "cut off": "truncatedTokens" },
};
