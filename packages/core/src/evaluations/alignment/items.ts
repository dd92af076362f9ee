import { type Json, type SystemPrompt, type TemplateKwargs, hashJson } from "@periodic-eval/contracts";
import { configError } from "@periodic-eval/contracts/options";
import type { CompletionRow } from "../prompting/completions.ts";
import type { Persona } from "../prompting/personas.ts";
import type { Judged } from "./judge-rows.ts";
import type { AlignmentItem, AnsweredRow } from "./metrics.ts";
import { alignmentWhere } from "./options.ts";
import type { TrainingExample } from "./training-rows.ts";
import type { AlignmentQuestion, JudgePrompts } from "@periodic-eval/data";

export interface ItemsOptions {
  readonly system: SystemPrompt;
  readonly personas: readonly Persona[] | undefined;
  readonly kwargs: TemplateKwargs | undefined;
  /** Returns the next training row, which comes before a question; null for bare questions only. */
  readonly nextExample: (() => TrainingExample) | null;
}

/**
 * Returns one group of items per paraphrase: an item per persona, or one without personas, and one behind a training row. A budget
 * splits at most one group.
 */
export function itemsOf(
  { id, paraphrases, system: questionPrompt, judgePrompts }: AlignmentQuestion,
  { system, personas, kwargs, nextExample }: ItemsOptions,
): readonly (readonly AlignmentItem[])[] {
  const roles: readonly { readonly id: string | null; readonly system: SystemPrompt }[] = personas ?? [
    { id: null, system: questionPrompt === null ? system : { text: questionPrompt } },
  ];
  const bare = paraphrases.map((question, at) =>
    roles.map((persona) => ({
      id: `${id}${paraphrases.length === 1 ? "" : `/${at}`}${persona.id === null ? "" : `@${persona.id}`}`,
      questionId: id,
      question,
      persona: persona.id,
      prompt: {
        messages: [{ role: "user", content: question }],
        system: persona.system,
        ...(kwargs !== undefined && { templateKwargs: kwargs }),
      },
      judgePrompts: judgePrompts && nameOf(judgePrompts),
    })),
  );
  if (nextExample === null) return bare;
  return bare.map(([item]) => {
    const { messages, system: ofRow } = nextExample();
    const prompt = {
      ...item!.prompt,
      system: ofRow,
      messages: [...messages, { role: "user", content: item!.question }],
    };
    return [item!, { ...item!, id: `${item!.id}@training_format`, format: "training" as const, prompt }];
  });
}

/** Adds to completions the facts of their items. */
export function answeredRows(
  items: readonly AlignmentItem[],
  rows: readonly CompletionRow[],
): readonly AnsweredRow[] {
  const byId = new Map(items.map((item) => [item.id, item]));
  return rows.map((row) => {
    const { questionId, judgePrompts, format } = byId.get(row.item)!;
    return { ...row, kind: "completion", questionId, judgePrompts, ...(format && { format }) };
  });
}

/** Returns a short answer to each item, and the anchors, each with the place of the question whose judge prompts it has. */
export function trialsOf(
  items: readonly AlignmentItem[],
  questions: readonly AlignmentQuestion[],
  anchors: readonly AnsweredRow[],
): readonly Judged[] {
  const placeOf = new Map(questions.map(({ id, place }) => [id, place]));
  const answered = items.map((item) => ({
    ...item,
    kind: "completion" as const,
    answer: "I do not know.",
    place: placeOf.get(item.questionId),
  }));
  const fixed = anchors.map((row) => ({
    ...row,
    place: answered.find(({ judgePrompts }) => judgePrompts === row.judgePrompts)?.place,
  }));
  return [...answered, ...fixed];
}

const nameOf = (prompts: JudgePrompts): string =>
  hashJson(prompts as unknown as Json)
    .replace(/^.*:/, "")
    .slice(0, 12);

export function promptsOf(questions: readonly AlignmentQuestion[]): Readonly<Record<string, JudgePrompts>> {
  const all = questions.flatMap(({ judgePrompts }) => (judgePrompts === null ? [] : [judgePrompts]));
  return Object.fromEntries(all.map((prompts) => [nameOf(prompts), prompts]));
}

export function checkQuestions(questions: readonly AlignmentQuestion[], personas: readonly Persona[]): void {
  const wrong = (got: string, expected: string, fix: string) =>
    configError({ where: alignmentWhere, path: ["personas"], got, expected, fix });
  if (personas.length === 0) return;
  const question = questions.find(({ system }) => system !== null);
  if (question !== undefined) {
    const fix = "Remove the personas, or name a file without the questions that have a `system`.";
    const got = `personas, and the question "${question.id}" with a system prompt`;
    throw wrong(got, "questions without a system prompt", fix);
  }
  const shared = personas.find(({ id }) => questions.some((question) => question.id === id));
  if (shared === undefined) return;
  const got = `the id "${shared.id}", which a question has`;
  throw wrong(got, "ids that no question has", "Rename the persona: both name metrics.");
}
