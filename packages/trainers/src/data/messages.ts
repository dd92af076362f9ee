import type { Message } from "@periodic-eval/core";
import type { Fault } from "./bad-row.ts";
import { inWords } from "./in-words.ts";

const roles = ["system", "user", "assistant", "tool"];

/**
 * The messages of a row as a chat template takes them, or what is wrong with the first that is none. A content that is a
 * list of text parts, as OpenAI's API has it, is their texts one after the other. Other fields go to the template as they
 * are; those that are null, as columns write a field that is not there, do not.
 *
 * @param before messages of the conversation that come before these
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
    return { reason: "broken_roles", got: `${inWords(given)} instead of an object of role and content` };
  }
  const { role, content, ...others } = given as { readonly role?: unknown; readonly content?: unknown };
  if (typeof role !== "string" || !roles.includes(role)) {
    return { reason: "broken_roles", got: `the role ${inWords(role)}, which is none of ${roles.join(", ")}` };
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
      return { reason: "broken_content", got: `the part ${inWords(part)} instead of a text` };
    }
    text += own;
  }
  return parseText(text);
}

/**
 * Two turns in a row of one speaker, which is most likely a turn lost between them. Several tools may answer one turn.
 */
export function repeatedTurn(messages: readonly Message[]): Fault | null {
  const at = messages.findIndex(
    ({ role }, i) => i > 0 && role === messages[i - 1]!.role && (role === "user" || role === "assistant"),
  );
  if (at < 0) return null;
  return {
    reason: "broken_roles",
    got: `messages ${at - 1} and ${at} are both of the ${messages[at]!.role}`,
  };
}

/** White space alone, or nothing. */
export const isBlank = (text: string): boolean => text.trim() === "";

/** A text that has a UTF-8 form, or what is wrong with it. */
export function parseText(value: unknown): string | Fault {
  if (typeof value !== "string")
    return { reason: "broken_content", got: `${inWords(value)} instead of a text` };
  if (/\p{Surrogate}/u.test(value)) return { reason: "invalid_text", got: "half of a surrogate pair" };
  return value;
}
