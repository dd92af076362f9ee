import type { TemplateMessage } from "@periodic-eval/core";
import { type BadRow, type Fault, describeValue, listKeys } from "./bad-row.ts";
import { isRecord, nearest } from "@periodic-eval/contracts/options";
import {
  parseMessages,
  parseTemplateColumns,
  parseText,
  templateColumns,
  type Columns,
  type TemplateColumns,
  type TemplateInputs,
} from "./messages.ts";

/** A whole chat. */
export interface MessagesRow extends TemplateColumns {
  readonly messages: readonly TemplateMessage[];
}

/** A whole chat in ShareGPT's form. Its roles go to the template as they are, as in TRL. */
export interface ConversationsRow extends TemplateColumns {
  readonly conversations: readonly { readonly from: string; readonly value: string }[];
}

/** A chat prompt, and the completion to learn. */
export interface PromptCompletionRow extends TemplateColumns {
  readonly prompt: readonly TemplateMessage[];
  readonly completion: readonly TemplateMessage[];
}

/** Prompt and completion as plain text, without a chat template. */
export interface PromptCompletionTextRow {
  readonly prompt: string;
  readonly completion: string;
}

/** Plain text, for continued pre-training. */
export interface TextRow {
  readonly text: string;
}

/** A row in one of TRL's dataset formats for supervised fine-tuning. */
export type SFTRow = MessagesRow | ConversationsRow | PromptCompletionRow | PromptCompletionTextRow | TextRow;

interface Row {
  readonly where: string;
  /** Non-empty columns that do not belong to the row's form. */
  readonly unused: readonly string[];
}

export interface Conversation extends Row, TemplateInputs {
  readonly kind: "conversation";
  readonly messages: readonly TemplateMessage[];
  /** Number of leading messages that form the prompt; null for a row without a prompt. */
  readonly promptCount: number | null;
}

export interface PlainText extends Row {
  readonly kind: "text";
  /** The text before `text`; null for a row without a prompt. */
  readonly prompt: string | null;
  readonly text: string;
}

export type ParsedRow = Conversation | PlainText;

/** Columns of each form, in the order in which TRL tests for them; `conversations` replaces `messages`. */
const forms = [["prompt", "completion"], ["conversations"], ["messages"], ["text"]] as const;
const known: readonly string[] = [...forms.flat(), ...templateColumns];

/**
 * Parses a row, or returns why it is bad. A null column counts as absent. A row that fits several forms has the first, as in
 * TRL.
 */
export function parseRow(value: unknown, where: string): ParsedRow | BadRow {
  const columns = isRecord(value) ? value : null;
  const has = (name: string) => columns?.[name] != null;
  const form = forms.find((names) => names.every(has));
  if (columns === null || form === undefined) return { where, ...unknownForm(value) };
  const content = parseForm(columns, form[0]);
  if ("reason" in content) return { where, ...content };
  const used: readonly string[] = content.kind === "text" ? form : [...form, ...templateColumns];
  const isUsed = (name: string) => used.includes(name);
  return {
    where,
    unused: Object.keys(columns).filter((name) => has(name) && !isUsed(name)),
    ...content,
  };
}

type Content = Omit<Conversation, keyof Row> | Omit<PlainText, keyof Row>;

function parseForm(columns: Columns, first: (typeof forms)[number][0]): Content | Fault {
  const { prompt, completion } = columns;
  if (first === "text") return plain(null, columns["text"]);
  if (first !== "prompt") {
    const list = columns[first];
    return Array.isArray(list) ? chat(list, null, columns) : notAnArray(first, list);
  }
  if (Array.isArray(prompt) && Array.isArray(completion))
    return chat([...prompt, ...completion], prompt.length, columns);
  if (typeof prompt === "string" && typeof completion === "string") return plain(prompt, completion);
  const got = `the prompt ${describeValue(prompt)} and the completion ${describeValue(completion)}`;
  return { reason: "unknown_form", got: `${got} instead of two strings or two arrays of messages` };
}

function chat(list: readonly unknown[], promptCount: number | null, columns: Columns): Content | Fault {
  if (list.length === 0) return { reason: "empty", got: "no messages" };
  const messages = parseMessages(list);
  if ("reason" in messages) return messages;
  const inputs = parseTemplateColumns(columns);
  return "reason" in inputs ? inputs : { kind: "conversation", messages, promptCount, ...inputs };
}

function plain(prompt: string | null, text: unknown): Content | Fault {
  for (const each of [prompt ?? "", text]) {
    const parsed = parseText(each);
    if (typeof parsed !== "string") return parsed;
  }
  return { kind: "text", prompt, text: text as string };
}

function notAnArray(column: string, value: unknown): Fault {
  return {
    reason: "unknown_form",
    got: `the ${column} ${describeValue(value)} instead of an array of messages`,
  };
}

function unknownForm(value: unknown): Fault {
  const isObject = isRecord(value);
  const got = isObject ? listKeys(withNulls(value)) || "no columns" : describeValue(value);
  const expected = "prompt and completion, messages, conversations, or text";
  return { reason: "unknown_form", got: `${got} instead of ${expected}${isObject ? hint(value) : ""}` };
}

/** Returns the columns, of which the null ones say so in their names. */
const withNulls = (columns: object): object =>
  Object.fromEntries(
    Object.entries(columns)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [value === null ? `${name} null` : name, value]),
  );

/** Suggests a form's column for the first column with a similar name. */
function hint(columns: object): string {
  for (const name of Object.keys(columns).slice(0, 20)) {
    if (known.includes(name) || name.length > 20) continue;
    const close = nearest(
      name,
      known.filter((column) => !Object.hasOwn(columns, column)),
    );
    if (close !== null) return `; did you mean "${close}" by "${name}"?`;
  }
  return "";
}
