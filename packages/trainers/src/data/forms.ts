import type { Message } from "@periodic-eval/core";
import { nearest } from "@periodic-eval/core/internal";
import type { BadRow, Fault } from "./bad-row.ts";
import { inWords, namesOf } from "./in-words.ts";
import { parseMessages, parseText, repeatedTurn } from "./messages.ts";

/** A whole chat. */
export interface MessagesRow {
  readonly messages: readonly Message[];
}

/** What was said before, and what the model is to say. */
export interface PromptCompletionRow {
  readonly prompt: readonly Message[];
  readonly completion: readonly Message[];
}

/** The same as plain text: no chat template is used. */
export interface PromptCompletionTextRow {
  readonly prompt: string;
  readonly completion: string;
}

/** Plain text to go on writing like. */
export interface TextRow {
  readonly text: string;
}

/** A row in one of the forms of TRL's datasets for supervised fine-tuning. */
export type SFTRow = MessagesRow | PromptCompletionRow | PromptCompletionTextRow | TextRow;

interface Row {
  readonly where: string;
  /** Columns that hold something and are not its form's. */
  readonly unused: readonly string[];
}

export interface Conversation extends Row {
  readonly kind: "conversation";
  readonly messages: readonly Message[];
  /** Leading messages that are the prompt; null where the row tells none. */
  readonly promptCount: number | null;
}

export interface PlainText extends Row {
  readonly kind: "text";
  /** What comes before `text`; null where the row tells none. */
  readonly prompt: string | null;
  readonly text: string;
}

export type ParsedRow = Conversation | PlainText;

/** Columns of each form, in the order in which TRL looks for them. */
const forms = [["prompt", "completion"], ["messages"], ["text"]] as const;
const known: readonly string[] = forms.flat();

/**
 * What a row says, or why it says nothing. A column of null counts as absent. Of a row that has several forms, the first
 * is taken, as TRL does.
 */
export function parseRow(value: unknown, where: string): ParsedRow | BadRow {
  const columns = typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
  const has = (name: string) => (columns as Record<string, unknown> | null)?.[name] != null;
  const form = forms.find((names) => names.every(has));
  if (columns === null || form === undefined) return { where, ...unknownForm(value) };
  const content = parseForm(columns, form[0]);
  if ("reason" in content) return { where, ...content };
  const isUsed = (name: string) => (form as readonly string[]).includes(name);
  return { where, unused: Object.keys(columns).filter((name) => has(name) && !isUsed(name)), ...content };
}

type SFTColumns = Readonly<Partial<Record<(typeof forms)[number][number], unknown>>>;
type Content = Omit<Conversation, keyof Row> | Omit<PlainText, keyof Row>;

function parseForm(
  { prompt, completion, messages, text }: SFTColumns,
  first: "prompt" | "messages" | "text",
): Content | Fault {
  if (first === "messages")
    return Array.isArray(messages) ? chat(messages, null) : noList("messages", messages);
  if (first === "text") return plain(null, text);
  if (Array.isArray(prompt) && Array.isArray(completion))
    return chat([...prompt, ...completion], prompt.length);
  if (typeof prompt === "string" && typeof completion === "string") return plain(prompt, completion);
  const got = `the prompt ${inWords(prompt)} and the completion ${inWords(completion)}`;
  return { reason: "unknown_form", got: `${got} instead of two texts or two lists of messages` };
}

function chat(list: readonly unknown[], promptCount: number | null): Content | Fault {
  if (list.length === 0) return { reason: "empty", got: "no messages" };
  const messages = parseMessages(list);
  if ("reason" in messages) return messages;
  return repeatedTurn(messages) ?? { kind: "conversation", messages, promptCount };
}

function plain(prompt: string | null, text: unknown): Content | Fault {
  for (const each of [prompt ?? "", text]) {
    const parsed = parseText(each);
    if (typeof parsed !== "string") return parsed;
  }
  return { kind: "text", prompt, text: text as string };
}

function noList(column: string, value: unknown): Fault {
  return { reason: "unknown_form", got: `the ${column} ${inWords(value)} instead of a list of messages` };
}

function unknownForm(value: unknown): Fault {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const got = isObject ? namesOf(value) || "no columns" : inWords(value);
  const expected = "prompt and completion, messages, or text";
  return { reason: "unknown_form", got: `${got} instead of ${expected}${isObject ? hint(value) : ""}` };
}

/** The likeliest slip: the first column that is nearly one of a form. */
function hint(columns: object): string {
  for (const name of Object.keys(columns).slice(0, 20)) {
    if (known.includes(name) || name.length > 20) continue;
    const close = nearest(
      name,
      known.filter((one) => !Object.hasOwn(columns, one)),
    );
    if (close !== null) return `; did you mean "${close}" by "${name}"?`;
  }
  return "";
}
