import {
  PeriodicEvalError,
  type Json,
  type Metric,
  type MetricKit,
  type Prompt,
  type Row,
} from "@periodic-eval/core";
import { isCount, quoteValue } from "@periodic-eval/core/internal";
import {
  encodePair,
  measureInBatches,
  scoreChoices,
  type ChoiceScores,
} from "@periodic-eval/core/evaluations";
import {
  familyParts,
  promptOf,
  type Asked,
  type Family,
  type FamilyItem,
  type FamilyOptions,
  type FamilyRow,
} from "./family.ts";
import { firstText, fitPrompt, type Reading } from "./fit-prompt.ts";
import { sequenceOf, type Tell } from "./token-sequence.ts";

/** What the families take whose documents have choices that continue a prompt. */
export interface ChoicesOptions<D extends Row> extends FamilyOptions<D> {
  readonly prompt: (document: D) => Asked;
  /** One or more, none of them empty. */
  readonly choices: (document: D) => readonly string[];
  /** The index of the right choice, or those of all that are right. */
  readonly gold: (document: D) => number | readonly number[];
}

export interface ChoicesItem<D> extends FamilyItem<D> {
  readonly prompt: Prompt;
  readonly choices: readonly string[];
  /** What is scored after the prompt: each choice behind the delimiter. */
  readonly continuations: readonly string[];
  /** Indices of the right choices, one or more. */
  readonly gold: readonly number[];
}

/** The result of one document; C choices. */
export interface ChoicesRow extends FamilyRow {
  /** `template_failure`: the chat could not be rendered, and was not asked. */
  readonly status: "scored" | "template_failure";
  readonly gold: readonly number[];
  /** Σ log p of each choice, [C]; null where not scored, like all that follows from it. */
  readonly nats: readonly number[] | null;
  /** Tokens of each choice, [C]. */
  readonly tokens: readonly number[] | null;
  /** Whether every token of a choice was the most likely one, [C]; of null the engine cannot tell. */
  readonly isGreedy: readonly (boolean | null)[] | null;
  /** Tokens of the prompt cut on the left to fit the model, the most over choices. */
  readonly truncatedTokens: number;
  /** Why it was not scored. */
  readonly reason?: string;
}

/** What a family makes of the scores. */
export interface Verdict {
  /** The index of the best choice, the first of equals; null where not scored. */
  readonly predicted: number | null;
  readonly correct: boolean | null;
}

export interface ChoicesFamily<D extends Row, V extends Verdict> {
  /** The function's name, for errors. */
  readonly where: string;
  readonly options: ChoicesOptions<D>;
  /** Names of the options that only it has. */
  readonly own: readonly string[];
  /** Between prompt and choice. */
  readonly delimiter: string;
  /** What of its options changes a number. */
  readonly how: Readonly<Record<string, Json>>;
  /** Null: the document was not scored. */
  readonly judge: (item: ChoicesItem<D>, scores: ChoiceScores | null) => V;
  readonly metrics: (kit: MetricKit<ChoicesRow & V>) => Readonly<Record<string, Metric<ChoicesRow & V>>>;
}

/** An evaluation that compares continuations of a prompt by their log-likelihoods. */
export function choicesFamily<D extends Row, V extends Verdict>({
  where,
  options,
  own,
  delimiter,
  how,
  judge,
  metrics,
}: ChoicesFamily<D, V>): Family<D, ChoicesItem<D>, ChoicesRow & V, "logLikelihoods"> {
  const parts = familyParts(where, options, ["prompt", "choices", "gold", ...own]);
  for (const name of ["prompt", "choices", "gold"] as const) {
    if (typeof options[name] === "function") continue;
    const fix = "Give what it is of a document.";
    const got = quoteValue(options[name]);
    throw new PeriodicEvalError({
      code: "config",
      where: `${where}.${name}`,
      got,
      expected: "a function of a document",
      fix,
    });
  }
  let provenance: Json = null;
  return {
    name: parts.name,
    version: parts.version,
    length: parts.length,
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
    measure: (model, items, context, tell) =>
      measureInBatches(items, context, async (some) => {
        const ready = some.map((item) => ({ item, reason: refusalOf(model, item.prompt) }));
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
          if (tell !== undefined) tellChoices(model, item, tell);
          return {
            ...row,
            status: "scored",
            ...scores,
            ...judge(item, scores),
          };
        });
      }),
    metrics: (kit) => parts.metrics(kit, {}, metrics),
    plainKeys(_, rows) {
      const count = (is: (row: ChoicesRow & V) => boolean) => rows.filter(is).length;
      return {
        correct: count(({ correct }) => correct === true),
        total: count(({ status }) => status === "scored"),
        template_failures: count(({ status }) => status === "template_failure"),
        truncated: count(({ truncatedTokens }) => truncatedTokens > 0),
      };
    },
  };
}

const unscored = { nats: null, tokens: null, isGreedy: null, truncatedTokens: 0 };

/** Why a chat cannot be rendered; null where it can, or nobody can tell. */
function refusalOf(model: Reading, prompt: Prompt): string | null {
  if (!("messages" in prompt)) return null;
  const fitted = fitPrompt(model, prompt, { budget: null, overflow: "report" });
  return "reason" in fitted ? fitted.reason : null;
}

function tellChoices<D>(model: Reading, item: ChoicesItem<D>, tell: Tell): void {
  const { tokenizer } = model;
  if (tokenizer === undefined) return;
  for (const continuation of item.continuations) {
    const { context, continuation: own } = encodePair(tokenizer, { context: item.prompt, continuation });
    tell(item.id, sequenceOf(context, own));
  }
}

function checkChoices(where: string, choices: readonly string[], gold: readonly number[]): void {
  const refuse = (got: string, expected: string, fix: string) => {
    throw new PeriodicEvalError({ code: "data", where, got, expected, fix });
  };
  if (!Array.isArray(choices) || choices.length === 0 || !choices.every(isText))
    refuse(
      `choices ${quoteValue(choices)}`,
      "one or more texts, none empty",
      "Mend the document, or leave it out.",
    );
  const isIndex = (at: unknown) => isCount(at) && at < choices.length;
  if (gold.length === 0 || !gold.every(isIndex))
    refuse(
      `gold ${quoteValue(gold)} of ${choices.length} choices`,
      "one or more of their indices, from 0",
      "Mend the document, or leave it out.",
    );
}

const isText = (choice: unknown) => typeof choice === "string" && choice !== "";
