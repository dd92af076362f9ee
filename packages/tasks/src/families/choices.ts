import type { AnswerFields, Json, Metric, MetricKit, Prompt, Row } from "@periodic-eval/core";
import { dataError, isCount, quoteValue } from "@periodic-eval/contracts/options";
import {
  encodePair,
  measureInBatches,
  scoreChoices,
  truncatedRows,
  type ChoiceScores,
} from "@periodic-eval/core/evaluations";
import * as z from "zod";
import { evaluateMethodOf } from "./evaluate.ts";
import {
  familyParts,
  promptOf,
  type PromptInput,
  type Family,
  type FamilyItem,
  type FamilyOptions,
  type FamilyRow,
} from "./family.ts";
import { firstText, fitPrompt, type TokenizingModel } from "./fit-prompt.ts";
import { sequenceOf, type OnSequence } from "./token-sequence.ts";

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

const documentFunction = z.custom((value) => typeof value === "function", "a function of a document");

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
  let provenance: Json = null;
  const family: Family<D, ChoicesItem<D>, ChoicesRow & V, "logLikelihoods"> = {
    name: parts.name,
    version: parts.version,
    length: parts.length,
    evaluate: evaluateMethodOf(() => family),
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
      const example = firstText(parts.name, model, items, { budget: null, overflow: "report" });
      provenance = parts.provenance({ delimiter, ...how }, example);
      return items;
    },
    provenance: () => provenance,
    prompts: (_, items) => items.map(({ prompt }) => prompt),
    measure: (model, items, context, onSequence) =>
      measureInBatches(items, context, async (some) => {
        const ready = some.map((item) => ({ item, reason: templateFailure(model, item.prompt) }));
        const asked = ready.filter(({ reason }) => reason === null);
        const answers = await scoreChoices(
          model,
          asked.map(({ item: { id, prompt, continuations } }) => ({ id, context: prompt, continuations })),
          { signal: context.signal },
        );
        const next = answers.values();
        return ready.map(({ item, reason }): ChoicesRow & V => {
          const { id, groups, gold } = item;
          const row = { id, item: id, groups, gold };
          if (reason !== null)
            return { ...row, ...unscored, status: "template_failure", reason, ...judge(item, null) };
          const scores = next.next().value!;
          const verdict = judge(item, scores);
          if (onSequence !== undefined) reportChoice(model, item, verdict.predicted!, onSequence);
          return { ...row, status: "scored", ...scores, ...verdict };
        });
      }),
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
  };
  return family;
}

const unscored = { nats: null, tokens: null, isGreedy: null, truncatedTokens: 0 };

/** Returns why a chat cannot be rendered; null if it can, or without a tokenizer. */
function templateFailure(model: TokenizingModel, prompt: Prompt): string | null {
  if (!("messages" in prompt)) return null;
  const fitted = fitPrompt(model, prompt, { budget: null, overflow: "report" });
  return "reason" in fitted ? fitted.reason : null;
}

/** Reports the prompt with the choice that the model prefers. `evaluate` requires a tokenizer. */
function reportChoice<D>(
  { tokenizer }: TokenizingModel,
  { id, prompt, continuations }: ChoicesItem<D>,
  predicted: number,
  onSequence: OnSequence,
): void {
  const pair = encodePair(tokenizer!, { context: prompt, continuation: continuations[predicted]! });
  onSequence(id, sequenceOf(pair.context, pair.continuation));
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
