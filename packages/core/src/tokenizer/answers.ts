import type { TemplateMessage } from "../contracts/model.ts";
import type { TemplateRendering } from "./chat.ts";

export type Render = (messages: readonly TemplateMessage[], generationPrompt: boolean) => TemplateRendering;

/** A half-open range of UTF-16 units. */
export type Span = readonly [start: number, end: number];

export interface AnswerText {
  readonly text: string;
  /** The assistant's answers in `text`; null if the template does not reveal them. */
  readonly spoken: readonly Span[] | null;
  /** Whether earlier answers are written otherwise than in the template's text of the chat. */
  readonly isRewritten: boolean;
}

export interface ChatToRender {
  readonly messages: readonly TemplateMessage[];
  readonly generationPrompt: boolean;
  readonly render: Render;
  /** Writes each answer as the template writes the last one, if the template writes earlier answers otherwise. */
  readonly training: boolean;
  /** Returns the start of the special token of `text` that contains the position, or the position. */
  readonly tokenStart: (text: string, position: number) => number;
}

/**
 * Renders a chat and finds the assistant's answers in it. For a template without `{% generation %}`, an answer begins after the
 * generation prompt, without a thinking block that the prompt opens, and ends after its end of turn. Both come from renderings of
 * parts of the chat.
 *
 * With `training`, the text is that of TRL 1.16.0's training templates: where a template writes an earlier answer without the
 * thinking block that it writes for the last answer (Qwen3, Qwen3.5), each answer gets the block.
 */
export function renderAnswers(chat: ChatToRender): AnswerText {
  const { messages, generationPrompt, render, training } = chat;
  const { text, generated } = render(messages, generationPrompt);
  const unchanged = (spoken: AnswerText["spoken"]) => ({ text, spoken, isRewritten: false });
  if (generated !== null) return unchanged(generated);
  try {
    const spoken = spokenByPrefixes(chat, text);
    if (spoken !== null) return unchanged(spoken);
    const pieced = pieceTogether(chat, training && hidesThinking(render));
    return { ...pieced, isRewritten: pieced.text !== text };
  } catch {
    // A template may refuse parts of a chat that it accepts as a whole.
    return unchanged(null);
  }
}

const isAnswer = ({ role }: TemplateMessage): boolean => role === "assistant";

/** Removes the thinking block that a generation prompt opens or leaves empty: it is part of the answer. */
const withoutThinking = (prompt: string): string => prompt.replace(/<think>\s*(<\/think>\s*)?$/, "");

/** Finds the answers of a template that writes a chat's beginning as it writes the chat. Null for other templates. */
function spokenByPrefixes(
  { messages, generationPrompt, render }: ChatToRender,
  text: string,
): readonly Span[] | null {
  const spans: Span[] = [];
  for (const [i, message] of messages.entries()) {
    if (!isAnswer(message)) continue;
    const before = withoutThinking(render(messages.slice(0, i), true).text);
    const isWhole = i === messages.length - 1 && !generationPrompt;
    const after = isWhole ? text : render(messages.slice(0, i + 1), false).text;
    if (!text.startsWith(before) || !text.startsWith(after)) return null;
    spans.push([before.length, after.length]);
  }
  return spans;
}

/** A noncharacter of Unicode, which no message ends with. */
const mark = "\uFDD7";

/** Whether the template begins the last answer with something that it leaves out of earlier ones. */
function hidesThinking(render: Render): boolean {
  const ask = { role: "user", content: "Hi" };
  const asked = [ask, { role: "assistant", content: mark }];
  const [last, earlier] = [asked, [...asked, ask]].map((messages) => render(messages, false).text.split(mark)[0]!);
  return last !== earlier && last!.startsWith(earlier!);
}

/**
 * Finds the answers by changing one at a time: the text after the change is the same, whatever the template does to earlier
 * answers. With `asLast`, takes each answer from a rendering in which it is the last message.
 *
 * @throws Error if the template's renderings do not fit together.
 */
function pieceTogether({ messages, generationPrompt, render, tokenStart }: ChatToRender, asLast: boolean) {
  const count = messages.length;
  const write = (length: number, prompt: boolean) => render(messages.slice(0, length), prompt).text;
  /** Returns the text of the first `length` messages after the words of the answer at `i`. */
  const textAfter = (length: number, prompt: boolean, i: number | null): string => {
    const text = write(length, prompt);
    if (i === null) return text;
    const changed = render(messages.slice(0, length).with(i, changedAnswer(messages[i]!)), prompt).text;
    if (changed === text) throw new Error("the template does not write an answer");
    return text.slice(text.length - commonEnd(text, changed));
  };
  const answers = messages.flatMap((message, i) => (isAnswer(message) ? [i] : []));
  const first = answers[0]!;
  const unprompted = write(first, false);
  const prompted = write(first, true);
  const cue = prompted.slice(tokenStart(unprompted, commonStart(unprompted, prompted)));

  let text = "";
  let previous: number | null = null;
  const turns: { readonly start: number; readonly end: number; readonly closing: string | null }[] = [];
  for (const i of answers) {
    const lead = withoutThinking(textAfter(i, true, previous));
    const source = asLast ? ([i + 1, false] as const) : ([count, generationPrompt] as const);
    const from = textAfter(...source, previous);
    const piece = from.slice(0, from.length - textAfter(...source, i).length);
    if (!piece.startsWith(lead)) throw new Error("the template writes an answer otherwise than its prompt");
    const start = text.length + lead.length;
    text += piece;
    const isWhole = i === count - 1 && !generationPrompt;
    const closing = isWhole ? null : textAfter(i + 1, true, i);
    if (closing?.endsWith(cue) === false) throw new Error("the template writes another generation prompt");
    turns.push({ start, end: text.length, closing: closing && closing.slice(0, closing.length - cue.length) });
    previous = i;
  }
  text += textAfter(count, generationPrompt, previous);
  const spoken = turns.map(({ start, end, closing }): Span => {
    if (closing === null) return [start, text.length];
    if (!text.startsWith(closing, end)) throw new Error("the template ends answers in several ways");
    return [start, end + closing.length];
  });
  return { text, spoken };
}

/** Returns the answer with a mark at the end of all that a template may write of it. */
function changedAnswer(message: TemplateMessage): TemplateMessage {
  const { content, tool_calls: calls } = message as TemplateMessage & { readonly tool_calls?: unknown };
  return {
    ...message,
    ...(typeof content === "string" || !Array.isArray(calls) ? { content: `${String(content ?? "")}${mark}` } : {}),
    ...(Array.isArray(calls) && { tool_calls: calls.map(changedCall) }),
  };
}

function changedCall(call: {
  readonly name?: unknown;
  readonly function?: { readonly name?: unknown };
}): object {
  if (call.function === undefined) return { ...call, name: `${String(call.name)}${mark}` };
  return { ...call, function: { ...call.function, name: `${String(call.function.name)}${mark}` } };
}

function commonStart(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length += 1;
  return length;
}

function commonEnd(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a.at(-1 - length) === b.at(-1 - length)) length += 1;
  return length;
}
