import { type Prompt, type SystemPrompt, type Tokenizer, PeriodicEvalError } from "@periodic-eval/contracts";
import { quoteValue } from "@periodic-eval/contracts/options";

/** An item's prompt as the model reads it. */
export interface RenderedItem {
  readonly id: string;
  /** Id of the persona; null without personas. */
  readonly persona: string | null;
  readonly prompt: Prompt;
  readonly ids: readonly number[];
}

/**
 * Throws unless the chat template shows the model every system prompt, because personas would otherwise be measured as the same
 * model. Two renderings of a chat without system text, with and without an empty message, may be equal.
 *
 * @param where Names the evaluation.
 * @throws PeriodicEvalError `model`, naming the two personas or the system prompt.
 */
export function checkSystemPrompts(
  tokenizer: Tokenizer,
  items: readonly RenderedItem[],
  where: string,
): void {
  const seen = new Map<string, RenderedItem>();
  for (const item of items) {
    const key = `${questionOf(item.prompt)} ${item.ids.join(" ")}`;
    const other = seen.get(key) ?? item;
    if (textOf(other.prompt) !== textOf(item.prompt)) throw equalPrompts(where, other, item);
    seen.set(key, other);
  }
  // A single system prompt has no other to be equal to.
  const oneEach = new Map(items.map((item) => [textOf(item.prompt), item]));
  for (const [text, item] of oneEach)
    if (text !== "" && isDropped(tokenizer, item)) throw droppedPrompt(where, item, text);
}

/**
 * Throws if a prompt is longer than the model's context length.
 *
 * @throws PeriodicEvalError `data`, naming the question and both lengths.
 */
export function checkLength(id: string, tokens: number, contextLength: number | null, where: string): void {
  if (contextLength === null || tokens <= contextLength) return;
  throw new PeriodicEvalError({
    code: "data",
    where: `${where} question "${id}"`,
    got: `a prompt of ${tokens} tokens`,
    expected: `at most ${contextLength} tokens, the model's context length`,
    fix: "Shorten or remove the question, or use a model with a longer context.",
  });
}

const systemOf = (prompt: Prompt): SystemPrompt =>
  "messages" in prompt ? (prompt.system ?? "omit") : "omit";

/** Returns the text of a prompt's system message; empty if it has none. */
function textOf(prompt: Prompt): string {
  const system = systemOf(prompt);
  return typeof system === "string" ? "" : system.text;
}

const questionOf = (prompt: Prompt): string =>
  JSON.stringify("messages" in prompt ? prompt.messages : prompt);

/** Whether another text in the system message leaves the rendered ids unchanged. */
function isDropped(tokenizer: Tokenizer, { prompt, ids }: RenderedItem): boolean {
  const changed = { ...prompt, system: { text: `${textOf(prompt)} ${textOf(prompt)}` } } as Prompt;
  const other = tokenizer.render(changed, { ending: "generation" }).ids;
  return other.length === ids.length && other.every((id, at) => id === ids[at]);
}

const droppedPrompt = (where: string, item: RenderedItem, text: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "model",
    where: `${where} ${nameOf(item)}`,
    got: `a chat template that leaves out the system prompt ${quoteValue(text)}`,
    expected: "a template that shows the model its system prompt",
    fix: useOther,
  });

const equalPrompts = (where: string, one: RenderedItem, other: RenderedItem): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "model",
    where: `${where} ${nameOf(one)} and ${nameOf(other)}`,
    got: "a chat template that renders the same prompt for both",
    expected: "a template that shows the model the system prompt of each",
    fix: useOther,
  });

const nameOf = ({ persona, id }: RenderedItem) =>
  persona === null ? `question "${id}"` : `persona "${persona}"`;

const useOther =
  "Use a model whose chat template has system messages, put the text into the questions, or remove the system prompts.";
