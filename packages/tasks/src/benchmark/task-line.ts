import type { Json, Message } from "@periodic-eval/core";
import { nearest, quoteValue } from "@periodic-eval/core/internal";
import type { Mistakes } from "./mistakes.ts";
import { splits, type BenchmarkTask, type Split } from "./benchmark-task.ts";
import { verifierSpec, type VerifierSpec } from "./verifiers/verifier-spec.ts";

/** What a line may leave out. */
export interface TaskDefaults {
  readonly split: Split | null;
  readonly verifier: VerifierSpec | null;
}

const known = ["id", "prompt", "messages", "answer", "split", "verifier", "metadata"];
const roles = ["system", "user", "assistant"];

/** The task of one line, null where something is wrong with it: then all of that is among the mistakes. */
export function parseTask(
  line: string,
  place: string,
  defaults: TaskDefaults,
  mistakes: Mistakes,
): BenchmarkTask | null {
  let isRight = true;
  const wrong = (got: string, expected: string, fix: string, cause?: unknown): null => {
    isRight = false;
    mistakes.add({ where: place, got, expected, fix, cause });
    return null;
  };
  const value = parsed(line, wrong);
  if (value === null) return null;
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    const close = nearest(key, known);
    const fix = close === null ? 'Remove it, or put it under "metadata".' : `Did you mean "${close}"?`;
    wrong(`the unknown key "${key}"`, `some of ${known.join(", ")}`, fix);
  }
  const { id, answer = null, metadata = {} } = value;
  if (typeof id !== "string" || id === "")
    wrong(
      gotOf(value, "id"),
      "id: a text",
      typeof id === "number" ? "Put it in quotes." : "Give the line an id.",
    );
  if (!isObject(metadata)) wrong(gotOf(value, "metadata"), "metadata: an object", "Write { key: value }.");
  const messages = messagesOf(value, wrong);
  const split = splitOf(value, defaults, wrong);
  const verifier = verifierOf(value, defaults, {
    wrong,
    keep(error) {
      isRight = false;
      mistakes.keep(error, place);
      return null;
    },
  });
  if (!isRight || messages === null || split === null || verifier === null) return null;
  return {
    id: id as string,
    messages,
    split,
    verifier,
    answer: answer as Json,
    metadata: metadata as BenchmarkTask["metadata"],
  };
}

type Fields = Readonly<Record<string, unknown>>;
type Wrong = (got: string, expected: string, fix: string, cause?: unknown) => null;

function parsed(line: string, wrong: Wrong): Fields | null {
  const fix = "Write one JSON object a line (JSONL), with no commas between lines.";
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : wrong(short(value), "a JSON object", fix);
  } catch (cause) {
    return wrong(`text that is no JSON (${(cause as Error).message})`, "a JSON object", fix, cause);
  }
}

function messagesOf(value: Fields, wrong: Wrong): readonly Message[] | null {
  const { prompt, messages } = value;
  if ((prompt === undefined) === (messages === undefined)) {
    const got = prompt === undefined ? `neither (keys: ${Object.keys(value).join(", ")})` : "both";
    return wrong(got, "prompt or messages", "Give the line a prompt, or the messages of a chat.");
  }
  if (prompt !== undefined) {
    if (isFilled(prompt)) return [{ role: "user", content: prompt }];
    return wrong(gotOf(value, "prompt"), "prompt: a text that is not empty", "Write what is asked.");
  }
  const expected = `messages: a list of { role, content }, the role one of ${roles.join(", ")}`;
  const isMessage = (one: unknown): one is Message =>
    isObject(one) &&
    Object.keys(one).length === 2 &&
    roles.includes(one["role"] as string) &&
    typeof one["content"] === "string";
  if (!Array.isArray(messages) || messages.length === 0)
    return wrong(gotOf(value, "messages"), expected, "Write the chat, the user's message last.");
  const odd = messages.findIndex((one) => !isMessage(one));
  if (odd >= 0) return wrong(`messages[${odd}] = ${short(messages[odd])}`, expected, "Correct that message.");
  const chat = messages as readonly Message[];
  if (chat.at(-1)!.role !== "user" || chat.some(({ role }, at) => role === "system" && at > 0)) {
    const order = chat.map(({ role }) => role).join(", ");
    const fix = "Order them so: the model answers the user's.";
    return wrong(`messages of ${order}`, "the user's message last, and a system message only first", fix);
  }
  return chat;
}

function splitOf(value: Fields, defaults: TaskDefaults, wrong: Wrong): Split | null {
  const { split = defaults.split } = value;
  if (splits.includes(split as Split)) return split as Split;
  return wrong(
    split === null && !("split" in value) ? "no split, here or in metadata.yaml" : `split = ${short(split)}`,
    `split: ${splits.join(" or ")}`,
    "Give the line a split, or metadata.yaml one for all lines.",
  );
}

function verifierOf(
  value: Fields,
  defaults: TaskDefaults,
  told: { readonly wrong: Wrong; readonly keep: (error: unknown) => null },
): VerifierSpec | null {
  if (value["verifier"] === undefined) {
    const fix = "Give the line a verifier, or metadata.yaml one for all lines.";
    return defaults.verifier ?? told.wrong("no verifier, here or in metadata.yaml", "a verifier", fix);
  }
  try {
    return verifierSpec(value["verifier"]);
  } catch (error) {
    return told.keep(error);
  }
}

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isFilled = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";

const gotOf = (value: Fields, name: string): string =>
  name in value
    ? `${name} = ${short(value[name])}`
    : `no ${name} (keys: ${Object.keys(value).join(", ") || "none"})`;

function short(value: unknown): string {
  const text = quoteValue(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
