import type { Json, TemplateChat, TemplateMessage } from "@periodic-eval/core";
import { findMarked, isMarkedNumber, markNumbers, withoutMark } from "@periodic-eval/data";
import { isRecord } from "@periodic-eval/contracts/options";
import { type Fault, describeValue } from "./bad-row.ts";

/** TRL's columns of a conversation besides its messages. */
export interface TemplateColumns {
  /** JSON schemas of the tools that the chat offers, or their JSON as a string. */
  readonly tools?: readonly Json[] | string | null;
  /** Variables for the chat template, such as `enable_thinking`. */
  readonly chat_template_kwargs?: TemplateChat["templateKwargs"] | null;
}

export type Columns = Readonly<Record<string, unknown>>;

/** The variables of a template besides the messages. */
export type TemplateInputs = Required<Pick<TemplateChat, "tools" | "templateKwargs">>;

/** Names of the columns that every form with messages may have. */
export const templateColumns = ["tools", "chat_template_kwargs"] as const satisfies (keyof TemplateColumns)[];

/** Names of all columns whose values a template reads. */
export const chatColumns: readonly string[] = [
  "messages",
  "conversations",
  "prompt",
  "completion",
  "chosen",
  "rejected",
  ...templateColumns,
];

/** Parses TRL's `tools` and `chat_template_kwargs`. */
export function parseTemplateColumns(columns: Columns): TemplateInputs | Fault {
  const { tools: listed = null, chat_template_kwargs: templateKwargs } = columns;
  const tools = typeof listed === "string" ? parsedJson(listed) : listed;
  if (tools !== null && !(Array.isArray(tools) && tools.every(isRecord)))
    return {
      reason: "broken_tools",
      got: `tools ${describeValue(listed)} instead of an array of JSON schemas, or its JSON as a string`,
    };
  if (templateKwargs != null && !isRecord(templateKwargs))
    return {
      reason: "broken_tools",
      got: `chat_template_kwargs ${describeValue(templateKwargs)} instead of an object of template variables`,
    };
  return {
    tools: tools as TemplateInputs["tools"],
    templateKwargs: withoutMarks(templateKwargs ?? {}) as TemplateInputs["templateKwargs"],
  };
}

/** Returns the object with its keys as they are in the row: the order of variables does not matter. */
const withoutMarks = (variables: object): object =>
  Object.fromEntries(Object.entries(variables).map(([name, value]) => [withoutMark(name), value as unknown]));

function parsedJson(text: string): unknown {
  try {
    JSON.parse(text);
    return findMarked(text) === null ? JSON.parse(markNumbers(text)) : text;
  } catch {
    return text;
  }
}

/**
 * Parses the messages of a row for a chat template, or describes the first bad one. `from` and `value` become `role` and
 * `content`, as in TRL's `maybe_convert_to_chatml`. Roles, their order and all further fields are the template's to judge.
 */
export function parseMessages(list: readonly unknown[]): readonly TemplateMessage[] | Fault {
  const messages: TemplateMessage[] = [];
  for (const [i, value] of list.entries()) {
    const message = parseMessage(value);
    if ("reason" in message) return { ...message, got: `message ${i}: ${message.got}` };
    messages.push(message);
  }
  return messages;
}

function parseMessage(value: unknown): TemplateMessage | Fault {
  if (!isRecord(value)) {
    return {
      reason: "broken_roles",
      got: `${describeValue(value)} instead of an object with role and content`,
    };
  }
  const { from, value: said, ...fields } = value;
  const message = {
    ...fields,
    ...(from !== undefined && { role: from }),
    ...(said !== undefined && { content: said }),
  } as Readonly<Record<string, unknown>>;
  const { role, content = null } = message;
  if (typeof role !== "string" || isMarkedNumber(role))
    return { reason: "broken_roles", got: `the role ${describeValue(role)} instead of a string` };
  const text = Array.isArray(content) ? parseParts(content) : content === null ? "" : parseText(content);
  if (typeof text !== "string") return text;
  return message as unknown as TemplateMessage;
}

function parseParts(parts: readonly unknown[]): string | Fault {
  let text = "";
  for (const part of parts) {
    const { type, text: words } = (part ?? {}) as { readonly type?: unknown; readonly text?: unknown };
    if (type !== "text" || typeof words !== "string" || isMarkedNumber(words)) {
      return {
        reason: "broken_content",
        got: `the part ${describeValue(part)} instead of {"type": "text", "text": …}`,
      };
    }
    text += words;
  }
  return parseText(text);
}

/** Whether an answer has words, thinking or a tool call. */
export function saysSomething(message: TemplateMessage): boolean {
  const {
    content,
    tool_calls: calls,
    ...fields
  } = message as TemplateMessage & Readonly<Record<string, unknown>>;
  const parts = Array.isArray(content)
    ? content.map((part) => (part as { readonly text: string }).text)
    : [content];
  const thoughts = [fields["reasoning_content"], fields["thinking"], fields["reasoning"]];
  return (
    (Array.isArray(calls) && calls.length > 0) ||
    [...parts, ...thoughts].some((text) => typeof text === "string" && !isBlank(text))
  );
}

/** Whether a string is empty or only white space. */
export const isBlank = (text: string): boolean => text.trim() === "";

/** Returns a string that can be encoded as UTF-8, or describes why the value is none. */
export function parseText(value: unknown): string | Fault {
  if (typeof value !== "string" || isMarkedNumber(value))
    return { reason: "broken_content", got: `${describeValue(value)} instead of a string` };
  if (/\p{Surrogate}/u.test(value)) return { reason: "invalid_text", got: "half of a surrogate pair" };
  return value;
}
