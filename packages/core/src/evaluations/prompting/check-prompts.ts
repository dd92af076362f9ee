import { type BulkTokenizer, type Prompt, PeriodicEvalError } from "@periodic-eval/contracts";
import { dataError, quoteValue } from "@periodic-eval/contracts/options";

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
  new PeriodicEvalError({
    code: "model",
    where: persona === null ? `${where} question "${id}"` : `${where} persona "${persona}"`,
    got: `a chat template that leaves out the system prompt ${quoteValue(text)}`,
    expected: "a template that shows the model its system prompt",
    fix: "Use a model whose chat template has system messages, put the text into the questions, or remove the system prompts.",
  });
