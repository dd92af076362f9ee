import {
  type Json,
  type BulkTokenizer,
  type ModelWith,
  type Prompt,
  type RenderedPrompt,
  type SystemPrompt,
  PeriodicEvalError,
  type MeasurementWarning,
} from "@periodic-eval/contracts";
import { errorMessage, codeOption } from "@periodic-eval/contracts/options";
import { renderEach } from "../../model/bulk-tokenizer.ts";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import { checkLength, checkSystemPrompts, isNoTemplate } from "../prompting/completions.ts";
import { cutPromptWarnings } from "../prompting/answer-warnings.ts";
import type { Persona } from "../prompting/personas.ts";
import type { ArcQuestion } from "@periodic-eval/data";
import { type QuestionSource, questionWarnings } from "./question-file.ts";
import {
  checkLogProbs,
  indexOfHighest,
  choiceFields,
  chanceWarnings,
  choiceMetrics,
  questionOf,
  choicePlainKeys,
  scored,
  unscored,
  type ChoiceRow,
} from "./metrics.ts";

export interface LettersOptions {
  readonly questions: QuestionSource;
  readonly system: SystemPrompt;
  readonly personas?: () => Promise<readonly Persona[]>;
}

interface LettersItem extends ArcQuestion {
  readonly persona?: string;
  readonly system?: SystemPrompt;
}

/**
 * Asks for the letter of the right choice: the user turn lists the choices and ends in `The correct answer is (`, then comes the
 * generation prompt. The log-probability of each label's first token at the last position decides, as in the research code of
 * explore-persona-space. The score depends on knowledge and on the habit of answering with a letter: a model that loses the
 * habit looks as if it had lost the knowledge. `cloze` separates the two.
 *
 * With personas there are metrics per persona too (`accuracy/doctor`), and intervals and tests are over questions, which all
 * personas share. A smaller budget uses fewer questions, the last one with some personas only. Two measurements are compared
 * over the items that both have.
 */
export function letters({ questions, system, personas }: LettersOptions) {
  let provenance: Json = null;
  let ofQuestions: readonly MeasurementWarning[] = [];
  return defineEvaluation({
    name: "capability",
    version: "letters-1",
    needs: ["tokenizer", "nextToken"],
    async items(model): Promise<readonly LettersItem[]> {
      const { items: chosen, repeated, provenance: source } = await questions();
      ofQuestions = questionWarnings(chosen, repeated, ["label", "choice"]);
      const people = await personas?.();
      const items = people === undefined ? chosen : chosen.flatMap((question) => byPersona(question, people));
      provenance = {
        method: "letters",
        ...(people === undefined ? { system } : { personas: people.map((persona) => ({ ...persona })) }),
        ...source,
        example_prompt: await checkQuestions(model, items, system),
      };
      return items;
    },
    provenance: () => provenance,
    async measure(model, items, context) {
      const all = await prepare(model.tokenizer, items, system);
      return measureInBatches(items, context, async (batch) => {
        const prepared = batch.map((item) => all.get(item)!);
        const ready = prepared.flatMap((entry) => ("row" in entry ? [] : [entry]));
        const answers = await model.nextToken(
          ready.map(({ ids, candidates }) => ({ prompt: { ids }, candidates })),
          { signal: context.signal },
        );
        const rows = ready.map(({ item, prompt }, at) => {
          const { nats } = answers[at]!;
          checkLogProbs(item.id, nats, item.labels.length);
          return { ...scored(item, indexOfHighest(nats), answers[at]!), prompt };
        });
        const next = rows.values();
        return prepared.map((entry, at): ChoiceRow => {
          const row = "row" in entry ? entry.row : next.next().value!;
          const { persona } = batch[at]!;
          return persona === undefined ? row : { ...row, persona };
        });
      });
    },
    prompts: (_, items) => items.map((item) => promptOf(item, system)),
    answers: choiceFields,
    metrics: (kit) => choiceMetrics(kit, personas === undefined ? {} : ofPersonas),
    warnings: (rows) => [
      ...ofQuestions,
      ...chanceWarnings(rows),
      ...cutPromptWarnings(rows, { metrics: null, losesQuestion: true }),
    ],
    plainKeys: choicePlainKeys,
  });
}

function byPersona(question: ArcQuestion, personas: readonly Persona[]): readonly LettersItem[] {
  return personas.map(({ id: persona, system }) => ({
    ...question,
    id: `${persona}/${question.id}`,
    persona,
    system,
  }));
}

/** Questions are the independent units: personas answer the same question alike. */
const ofPersonas = {
  by: ({ persona }: ChoiceRow) => persona ?? null,
  cluster: questionOf,
};

/** Returns the chat of one question. */
export function lettersPrompt({ question, labels, choices }: ArcQuestion, system: SystemPrompt): Prompt {
  const options = labels.map((label, at) => `(${label}) ${choices[at]}`).join("\n");
  return {
    messages: [{ role: "user", content: `${question}\n\n${options}\n\nThe correct answer is (` }],
    system,
  };
}

const promptOf = (item: LettersItem, system: SystemPrompt) => lettersPrompt(item, item.system ?? system);

type Prepared =
  | {
      readonly item: ArcQuestion;
      readonly prompt: string | null;
      readonly ids: readonly number[];
      readonly candidates: readonly number[];
    }
  | { readonly row: ChoiceRow };

/** Renders all questions and encodes their labels, with one call each. */
async function prepare(
  tokenizer: BulkTokenizer,
  items: readonly LettersItem[],
  system: SystemPrompt,
): Promise<ReadonlyMap<LettersItem, Prepared>> {
  const prompts = items.map((item) => promptOf(item, system));
  const rendered = await renderEach(tokenizer, prompts);
  const labels = [...new Set(items.flatMap((item) => item.labels))];
  const encoded = await tokenizer.encode(labels, { specialTokens: false });
  const firstOf = new Map(labels.map((label, at) => [label, encoded[at]![0]]));
  return new Map(items.map((item, at) => [item, preparedOf(item, rendered[at]!, firstOf)]));
}

function preparedOf(
  item: LettersItem,
  rendered: PromiseSettledResult<RenderedPrompt>,
  firstOf: ReadonlyMap<string, number | undefined>,
): Prepared {
  if (rendered.status === "rejected")
    return { row: unscored(item, "template_failure", errorMessage(rendered.reason)) };
  const first = item.labels.map((label) => firstOf.get(label));
  const candidates = first.filter((id) => id !== undefined);
  if (candidates.length < item.labels.length) {
    const empty = item.labels
      .filter((_, at) => first[at] === undefined)
      .map((label) => JSON.stringify(label));
    return { row: unscored(item, "label_collision", `no token begins ${empty.join(", ")}`) };
  }
  if (new Set(candidates).size < candidates.length) {
    const shared = item.labels.filter((_, at) => candidates.filter((id) => id === first[at]).length > 1);
    return { row: unscored(item, "label_collision", `the labels ${shared.join(", ")} share a first token`) };
  }
  const { text, ids } = rendered.value;
  return { item, prompt: text, ids, candidates };
}

/**
 * Returns the text of the first question that renders, after checks of all that do. Throws before step 1 if the template fails on
 * every question or drops a system prompt, or if a question is longer than the context.
 */
async function checkQuestions(
  { tokenizer, contextLength }: ModelWith<"tokenizer">,
  items: readonly LettersItem[],
  system: SystemPrompt,
): Promise<string | null> {
  const prompts = items.map((item) => promptOf(item, system));
  const results = await renderEach(tokenizer, prompts);
  const rendered = items.flatMap(({ id, persona = null }, at) => {
    const result = results[at]!;
    return result.status === "rejected" ? [] : [{ id, persona, prompt: prompts[at]!, ...result.value }];
  });
  const failed = results.find((result) => result.status === "rejected");
  if (rendered.length === 0) throw noQuestionRenders(items, system, failed?.reason);
  for (const { id, ids } of rendered) checkLength(id, ids.length, contextLength, "capability");
  await checkSystemPrompts(tokenizer, rendered, "capability");
  return rendered[0]!.text;
}

function noQuestionRenders(
  items: readonly LettersItem[],
  system: SystemPrompt,
  cause: unknown,
): PeriodicEvalError {
  if (isNoTemplate(cause))
    return new PeriodicEvalError({
      code: "model",
      ...codeOption("capability", "method"),
      got: `"letters" and ${cause.got} (${cause.where})`,
      expected: "a chat template, in which the model is asked for the letter of an answer",
      fix: 'Set `method: "cloze"`, which needs no chat template, or give the tokenizer the chat template of the model.',
      cause,
    });
  const systems = [...new Set(items.map((item) => JSON.stringify(item.system ?? system)))].join(" or ");
  return new PeriodicEvalError({
    code: "model",
    ...codeOption("capability", "system"),
    got: `a chat template that fails on every question (${errorMessage(cause)})`,
    expected: `a template that renders a user turn with system = ${systems}`,
    fix: 'Choose another `system`, or set `method: "cloze"`, which needs no chat template.',
    cause,
  });
}
