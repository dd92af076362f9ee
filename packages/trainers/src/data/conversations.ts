import { accessSync, constants, createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { PeriodicEvalError, shown, type Message } from "@periodic-eval/core";
import type { BadRow, BadRowReason } from "./bad-row.ts";

/** A row as TRL writes it: what was said before, and what the model is to say. Only the completion is trained on. */
export interface PromptCompletionRow {
  readonly prompt: readonly Message[];
  readonly completion: readonly Message[];
}

/** A row as TRL writes it: a whole chat, of which every assistant turn is trained on. */
export interface MessagesRow {
  readonly messages: readonly Message[];
}

/** JSON Lines on disk, one row a line, or the rows themselves. */
export type ConversationSource = string | readonly (PromptCompletionRow | MessagesRow)[];

export interface Conversation {
  readonly where: string;
  readonly messages: readonly Message[];
  /** Leading messages that are never trained on, whoever spoke them. */
  readonly promptCount: number;
}

/**
 * What can be said of a source without reading it.
 *
 * @throws PeriodicEvalError `config` where it is none, `data` for a file that is not there or cannot be read.
 */
export function checkSource(where: string, source: unknown): void {
  if (Array.isArray(source)) return;
  if (typeof source !== "string" || source === "") {
    throw new PeriodicEvalError({
      code: "config",
      where,
      got: shown(source),
      expected: "the path of a JSON Lines file, or a list of rows",
      fix: "Name the file of conversations.",
    });
  }
  try {
    accessSync(source, constants.R_OK);
  } catch (cause) {
    throw unreadable(source, cause);
  }
}

/** The rows of a source in their order, each a conversation or the reason why it is none. Blank lines are no rows. */
export async function* readConversations(
  source: ConversationSource,
): AsyncGenerator<Conversation | BadRow, void> {
  if (typeof source !== "string") {
    for (const [i, row] of source.entries()) yield parseRow(row, `dataset[${i}]`);
    return;
  }
  let line = 0;
  for await (const text of linesOf(source)) {
    line += 1;
    if (text.trim() === "") continue;
    const where = `${source}:${line}`;
    const row = parseJson(line === 1 ? text.replace(/^\uFEFF/, "") : text);
    yield row === undefined ? { where, reason: "not_json", got: abbreviated(text) } : parseRow(row, where);
  }
}

async function* linesOf(path: string): AsyncGenerator<string, void> {
  try {
    yield* createInterface({ input: createReadStream(path, "utf8"), crlfDelay: Infinity });
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

function unreadable(path: string, cause: unknown): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "data",
    where: path,
    got: (cause as NodeJS.ErrnoException).code ?? String(cause),
    expected: "a readable file of JSON Lines",
    fix: "Check the path of the dataset and its permissions.",
    cause,
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function parseRow(row: unknown, where: string): Conversation | BadRow {
  const bad = (reason: BadRowReason, got: string): BadRow => ({ where, reason, got });
  const { prompt, completion, messages } = (row ?? {}) as {
    prompt?: unknown;
    completion?: unknown;
    messages?: unknown;
  };
  const isPair = isList(prompt) && isList(completion);
  const turns = isPair ? [...prompt, ...completion] : messages;
  if (!isList(turns)) {
    const keys =
      row !== null && typeof row === "object"
        ? Object.keys(row).join(", ")
        : abbreviated(JSON.stringify(row));
    return bad(
      "unknown_form",
      `${keys || "nothing"} instead of lists prompt and completion, or a list messages`,
    );
  }
  if (turns.length === 0) return bad("empty", "no messages");
  for (const [i, turn] of turns.entries()) {
    const fault = faultOf(turn, i);
    if (fault !== null) return bad("broken_roles", `message ${i}: ${fault}`);
  }
  const chat = turns as readonly Message[];
  const promptCount = isPair ? prompt.length : 0;
  const spoken = chat.slice(promptCount).filter(({ role }) => role === "assistant");
  if (spoken.length === 0) {
    return bad("no_assistant_turn", `only ${chat.map(({ role }) => role).join(", ")}`);
  }
  if (spoken.every(({ content }) => content === "")) return bad("empty", "assistant turns without a word");
  return { where, messages: chat, promptCount };
}

const roles = ["system", "user", "assistant", "tool"];

function faultOf(turn: unknown, index: number): string | null {
  const { role, content } = (turn ?? {}) as { role?: unknown; content?: unknown };
  if (typeof role !== "string" || !roles.includes(role)) {
    return `the role ${JSON.stringify(role) ?? "missing"}, which is none of ${roles.join(", ")}`;
  }
  if (typeof content !== "string")
    return `a content that is no text (${abbreviated(JSON.stringify(content) ?? "missing")})`;
  return role === "system" && index > 0 ? "a system message that is not the first" : null;
}

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);

const abbreviated = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
