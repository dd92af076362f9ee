import type { Message } from "@periodic-eval/core";
import type { Fault } from "./bad-row.ts";
import { describeValue } from "./describe-value.ts";

const roles = ["system", "user", "assistant", "tool"];

/**
 * Parses the messages of a row for a chat template, or describes the first bad one. A content that is an array of text parts,
 * as in OpenAI's API, becomes the concatenation of their texts. Other fields go to the template unchanged, except null ones:
 * columnar files store missing fields as null.
 *
 * @param before Messages of the conversation that come before these.
 */
export function parseMessages(list: readonly unknown[], before = 0): readonly Message[] | Fault {
  const messages: Message[] = [];
  for (const [i, given] of list.entries()) {
    const message = parseMessage(given, before + i);
    if ("reason" in message) return { ...message, got: `message ${i}: ${message.got}` };
    messages.push(message);
  }
  return messages;
}

function parseMessage(given: unknown, index: number): Message | Fault {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    return {
      reason: "broken_roles",
      got: `${describeValue(given)} instead of an object with role and content`,
    };
  }
  const { role, content, ...others } = given as { readonly role?: unknown; readonly content?: unknown };
  if (typeof role !== "string" || !roles.includes(role)) {
    return {
      reason: "broken_roles",
      got: `the role ${describeValue(role)} instead of one of ${roles.join(", ")}`,
    };
  }
  if (role === "system" && index > 0) {
    return { reason: "broken_roles", got: "a system message that is not the first" };
  }
  const text = Array.isArray(content) ? parseParts(content) : parseText(content);
  if (typeof text !== "string") return text;
  return {
    role,
    content: text,
    ...Object.fromEntries(Object.entries(others).filter(([, value]) => value !== null)),
  };
}

function parseParts(parts: readonly unknown[]): string | Fault {
  let text = "";
  for (const part of parts) {
    const { type, text: own } = (part ?? {}) as { readonly type?: unknown; readonly text?: unknown };
    if (type !== "text" || typeof own !== "string") {
      return { reason: "broken_content", got: `the part ${describeValue(part)} instead of a text part` };
    }
    text += own;
  }
  return parseText(text);
}

/**
 * Reports two consecutive turns of the user or of the assistant: a turn between them was most likely lost. Several tools may
 * answer one turn.
 */
export function repeatedTurn(messages: readonly Message[]): Fault | null {
  const at = messages.findIndex(
    ({ role }, i) => i > 0 && role === messages[i - 1]!.role && (role === "user" || role === "assistant"),
  );
  if (at < 0) return null;
  return {
    reason: "broken_roles",
    got: `messages ${at - 1} and ${at} both have the role ${messages[at]!.role}`,
  };
}

/** Whether a string is empty or only white space. */
export const isBlank = (text: string): boolean => text.trim() === "";

/** Returns a string that can be encoded as UTF-8, or describes why the value is none. */
export function parseText(value: unknown): string | Fault {
  if (typeof value !== "string")
    return { reason: "broken_content", got: `${describeValue(value)} instead of a string` };
  if (/\p{Surrogate}/u.test(value)) return { reason: "invalid_text", got: "half of a surrogate pair" };
  return value;
}
