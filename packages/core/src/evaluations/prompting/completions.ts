import {
  type AnswerFields,
  type MeasureContext,
  type Row,
  type Json,
  type Abilities,
  type EvaluableModel,
  type GenerateRequest,
  type ModelWith,
  type Prompt,
  type Sampling,
  PeriodicEvalError,
  hashJson,
  type BulkTokenizer,
} from "@periodic-eval/contracts";
import { errorMessage, dataError, quoteValue, modelError } from "@periodic-eval/contracts/options";
import { renderEach } from "../../model/bulk-tokenizer.ts";
import { opensThinking, stripThinking } from "../../model/thinking.ts";
import { seedOf } from "../../random/streams.ts";
import type { TextFault } from "./coherence.ts";

/** One question, asked of one persona. */
export interface CompletionItem extends Row {
  readonly question: string;
  /** Id of the persona; null without personas. */
  readonly persona: string | null;
  readonly prompt: Prompt;
}

/** One completion. Its id is `<item>#<sample>`. */
export interface CompletionRow extends Row {
  readonly item: string;
  readonly question: string;
  readonly persona: string | null;
  /** Counts from 0. */
  readonly sample: number;
  readonly text: string;
  /** `length`: cut off at `maxNewTokens` or the model's context length. */
  readonly finish: "stop" | "length";
  /** Number of generated tokens; null if the engine does not report it, absent in a fixed answer. */
  readonly tokens?: number | null;
  /** The whole prompt: what the chat template made of it, or the chat for a model without a tokenizer. Absent in a fixed answer. */
  readonly prompt?: string | null;
  /** The graded part: the text, without its thinking if that is stripped; null if the thinking did not end. */
  readonly answer: string | null;
  /** Why the graded answer's text says nothing; absent if it may say something. */
  readonly fault?: TextFault;
}

export interface CompletionOptions {
  /** Completions per item of a whole measurement. */
  readonly samples: number;
  readonly sampling: Omit<Sampling, "seed">;
  /** Whether the answer leaves out the thinking. */
  readonly stripThinking: boolean;
  /** `await promptTexts(model, items)`, once for all items of a measurement. */
  readonly prompts: PromptTexts;
}

/** The text of each prompt, as the model reads it. */
export type PromptTexts = ReadonlyMap<Prompt, { readonly prompt: string | null; readonly isOpened: boolean }>;

type SampleRange = NonNullable<MeasureContext["samples"]>;

/** The fields of a `CompletionRow`, for `Evaluation.answers`. */
export const completionFields = {
  question: "question",
  answer: "text",
  prompt: "prompt",
  persona: "persona",
  tokens: { generated: "tokens" },
} as const satisfies AnswerFields;

export const truncatedFlag = { name: "truncated", any: [{ finish: { is: ["length"] } }] };

/** The batch size of `measureInBatches` for sampled completions. */
export const completionItemsPerBatch = 16;

/**
 * Samples `samples` completions of each item, or those of the context, in one call, in the order of the items. Each completion
 * has its own random stream, named by step, prompt and sample: items with the same prompt share completions, also across evaluations of one step
 * that use the same sampling.
 *
 * @throws The model's errors.
 */
export async function sampleCompletions(
  model: ModelWith<"generate">,
  items: readonly CompletionItem[],
  { samples, sampling, stripThinking: strips, prompts }: CompletionOptions,
  { signal, seed, samples: range = { first: 0, end: samples } }: MeasureContext,
): Promise<readonly CompletionRow[]> {
  const draws = items.flatMap((item) => samplesIn(range).map((sample) => ({ item, sample })));
  const prompted = items.map(({ prompt }) => prompt);
  const completions = await model.generate(requestsFor(prompted, range, sampling, seed), { signal });
  return draws.map(({ item, sample }, at) => {
    const { text, finish, ids, usage } = completions[at]!;
    const { prompt, isOpened } = prompts.get(item.prompt)!;
    return {
      id: `${item.id}#${sample}`,
      item: item.id,
      question: item.question,
      persona: item.persona,
      sample,
      text,
      finish,
      tokens: ids?.length ?? usage?.outputTokens ?? null,
      prompt,
      answer: strips ? stripThinking(text, { isOpened }) : text,
    };
  });
}

const samplesIn = ({ first, end }: SampleRange): readonly number[] =>
  Array.from({ length: end - first }, (_, at) => first + at);

/** Returns one request per prompt and sample. Seeds depend on prompt and sample only, so that evaluations share equal completions. */
export const requestsFor = (
  prompts: readonly Prompt[],
  samples: SampleRange,
  sampling: Omit<Sampling, "seed">,
  seed: string,
): readonly GenerateRequest[] =>
  prompts.flatMap((prompt) => {
    const name = hashJson(prompt as unknown as Json);
    return samplesIn(samples).map((sample) => ({
      prompt,
      sampling: { ...sampling, seed: seedOf(seed, name, sample) },
    }));
  });

/**
 * Renders the prompts of a measurement with one call of the tokenizer, for `sampleCompletions`.
 *
 * @param model A model whose evaluation wants the ability `tokenizer`.
 */
export async function promptTexts(
  model: object,
  items: readonly { readonly prompt: Prompt }[],
): Promise<PromptTexts> {
  const { tokenizer } = model as Partial<Abilities>;
  const prompts = [...new Set(items.map(({ prompt }) => prompt))];
  const rendered = prompts.length === 0 ? [] : await tokenizer?.render(prompts);
  return new Map(
    prompts.map((prompt, at) => {
      const text = rendered?.[at]!.text ?? null;
      return [prompt, { prompt: rendered ? text : chatText(prompt), isOpened: opensThinking(text) }];
    }),
  );
}

/** Returns a prompt as a chat, for a model without a tokenizer. */
function chatText(prompt: Prompt): string | null {
  if (!("messages" in prompt)) return "text" in prompt ? prompt.text : null;
  const { messages, system = "omit" } = prompt;
  const all = typeof system === "string" ? messages : [{ role: "system", content: system.text }, ...messages];
  return all.map(({ role, content }) => `${role}: ${content}`).join("\n\n");
}

/**
 * Renders every item, so that errors come before step 1: a chat template that fails or drops a system prompt, a prompt longer
 * than the context. Returns the text of the first item; null for a model without a tokenizer.
 *
 * @param model A model whose evaluation wants the ability `tokenizer`.
 * @throws PeriodicEvalError `model` for the template, naming the item or its persona; `data` for a prompt that is too long.
 */
export async function renderItems(
  model: object,
  items: readonly CompletionItem[],
  evaluation: string,
): Promise<string | null> {
  const { tokenizer, contextLength = null } = model as Partial<Abilities & EvaluableModel>;
  if (tokenizer === undefined) return null;
  const results = await renderEach(
    tokenizer,
    items.map(({ prompt }) => prompt),
  );
  const rendered = items.map((item, at) => {
    const result = results[at]!;
    if (result.status === "rejected") throw failingTemplate(item, evaluation, result.reason);
    return { ...item, ...result.value };
  });
  for (const { id, ids } of rendered) checkLength(id, ids.length, contextLength, evaluation);
  await checkSystemPrompts(tokenizer, rendered, evaluation);
  return rendered[0]?.text ?? null;
}

/** Whether an error says that the tokenizer has no chat template. */
export const isNoTemplate = (error: unknown): error is PeriodicEvalError =>
  PeriodicEvalError.is(error) && error.detail?.kind === "no-template";

const failingTemplate = ({ id, persona }: CompletionItem, evaluation: string, cause: unknown) =>
  isNoTemplate(cause)
    ? modelError(evaluation, `${cause.got} (${cause.where})`, cause.expected, cause.fix, cause)
    : modelError(
        persona === null ? `${evaluation} question "${id}"` : `${evaluation} persona "${persona}"`,
        `a chat template that fails (${errorMessage(cause)})`,
        "a template that renders its system prompt and a user turn",
        "Choose another `system`, or remove the persona or the question.",
        cause,
      );

/** An item's prompt as the model reads it. */
interface RenderedItem {
  readonly id: string;
  /** Id of the persona; null without personas. */
  readonly persona: string | null;
  readonly prompt: Prompt;
  readonly ids: readonly number[];
}

/**
 * Throws unless the chat template shows the model every system prompt, because personas would otherwise be measured as the same
 * model.
 *
 * @param where Names the evaluation.
 * @throws PeriodicEvalError `model`, naming the persona or the question, and the system prompt.
 */
export async function checkSystemPrompts(
  tokenizer: BulkTokenizer,
  items: readonly RenderedItem[],
  where: string,
): Promise<void> {
  const last = new Map(items.map((item) => [textOf(item.prompt), item]));
  last.delete("");
  const changed = [...last.values()].map(({ prompt }) => withChangedSystem(prompt));
  const rendered = changed.length === 0 ? [] : await tokenizer.render(changed);
  for (const [at, [text, item]] of [...last].entries()) {
    const { ids } = rendered[at]!;
    const isDropped = ids.length === item.ids.length && ids.every((id, index) => id === item.ids[index]);
    if (isDropped) throw droppedPrompt(where, item, text);
  }
}

/**
 * Throws if a prompt is longer than the model's context length.
 *
 * @throws PeriodicEvalError `data`, naming the question and both lengths.
 */
export function checkLength(id: string, tokens: number, contextLength: number | null, where: string): void {
  if (contextLength === null || tokens <= contextLength) return;
  const expected = `at most ${contextLength} tokens, the model's context length`;
  const fix = "Shorten or remove the question, or use a model with a longer context.";
  throw dataError(`${where} question "${id}"`, `a prompt of ${tokens} tokens`, expected, fix);
}

/** Returns the text of a prompt's system message; empty if it has none. */
function textOf(prompt: Prompt): string {
  const { system = "omit" } = "messages" in prompt ? prompt : {};
  return typeof system === "string" ? "" : system.text;
}

/** Returns the prompt with another text in the system message. If its ids stay the same, the template drops the message. */
const withChangedSystem = (prompt: Prompt) =>
  ({ ...prompt, system: { text: `${textOf(prompt)} ${textOf(prompt)}` } }) as Prompt;

const droppedPrompt = (where: string, { id, persona }: RenderedItem, text: string): PeriodicEvalError =>
  modelError(
    persona === null ? `${where} question "${id}"` : `${where} persona "${persona}"`,
    `a chat template that leaves out the system prompt ${quoteValue(text)}`,
    "a template that shows the model its system prompt",
    "Use a model whose chat template has system messages, put the text into the questions, or remove the system prompts.",
  );
