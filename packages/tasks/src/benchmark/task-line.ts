import { abbreviated, didYouMean, isFilled, isRecord, quoteValue } from "@periodic-eval/contracts/options";
import { type Json, type Message, PeriodicEvalError, type ErrorDetails } from "@periodic-eval/core";
import { strictJson } from "@periodic-eval/data";
import { splits, type BenchmarkTask, type Split } from "./benchmark-task.ts";
import { verifierSpec, type VerifierSpec } from "./verifiers/verifier-spec.ts";

/** Defaults for lines, from `metadata.yaml`. */
export interface TaskDefaults {
  readonly split: Split | null;
  readonly verifier: VerifierSpec | null;
}

const known = ["id", "prompt", "messages", "answer", "split", "verifier", "metadata"];
const roles = ["system", "user", "assistant"];

/** Parses the task of one line. Adds everything wrong with it to the mistakes, and then returns null. */
export function parseTask(
  line: string,
  place: string,
  defaults: TaskDefaults,
  mistakes: Mistakes,
): BenchmarkTask | null {
  let isRight = true;
  const report = (got: string, expected: string, fix: string, cause?: unknown): null => {
    isRight = false;
    mistakes.add({ where: place, got, expected, fix, cause });
    return null;
  };
  const value = parseObject(line, report);
  if (value === null) return null;
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    const fix = didYouMean(key, known) ?? 'Remove it, or put it under "metadata".';
    report(`the unknown key "${key}"`, `some of ${known.join(", ")}`, fix);
  }
  const { id, answer = null, metadata = {} } = value;
  if (typeof id !== "string" || id === "")
    report(
      gotOf(value, "id"),
      "id: a string",
      typeof id === "number" ? "Put it in quotes." : "Add an id to the line.",
    );
  if (!isRecord(metadata)) report(gotOf(value, "metadata"), "metadata: an object", "Write { key: value }.");
  const messages = messagesOf(value, report);
  const split = splitOf(value, defaults, report);
  const verifier = verifierOf(value, defaults, {
    report,
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
type Report = (got: string, expected: string, fix: string, cause?: unknown) => null;

function parseObject(line: string, report: Report): Fields | null {
  const fix = "Write one JSON object per line (JSONL), without commas between lines.";
  const parsed = strictJson(line);
  if (parsed.fault === null)
    return isRecord(parsed.value) ? parsed.value : report(short(parsed.value), "a JSON object", fix);
  const { got, expected, cause, fix: correct } = parsed.fault;
  return cause === undefined ? report(got, expected, correct) : report(got, "a JSON object", fix, cause);
}

function messagesOf(value: Fields, report: Report): readonly Message[] | null {
  const { prompt, messages } = value;
  if ((prompt === undefined) === (messages === undefined)) {
    const got = prompt === undefined ? `neither (keys: ${Object.keys(value).join(", ")})` : "both";
    return report(got, "prompt or messages", "Add a prompt, or the messages of a chat, to the line.");
  }
  if (prompt !== undefined) {
    if (isFilled(prompt)) return [{ role: "user", content: prompt }];
    return report(gotOf(value, "prompt"), "prompt: a non-empty string", "Write the prompt.");
  }
  const expected = `messages: an array of { role, content }, with a role of ${roles.join(", ")}`;
  const isMessage = (one: unknown): one is Message =>
    isRecord(one) &&
    Object.keys(one).length === 2 &&
    roles.includes(one["role"] as string) &&
    typeof one["content"] === "string";
  if (!Array.isArray(messages) || messages.length === 0)
    return report(gotOf(value, "messages"), expected, "Write the chat, with the user's message last.");
  const at = messages.findIndex((one) => !isMessage(one));
  if (at >= 0) return report(`messages[${at}] = ${short(messages[at])}`, expected, "Correct that message.");
  const chat = messages as readonly Message[];
  if (chat.at(-1)!.role !== "user" || chat.some(({ role }, at) => role === "system" && at > 0)) {
    const order = chat.map(({ role }) => role).join(", ");
    const fix = "Reorder them: the model answers the last message.";
    return report(`messages of ${order}`, "the user's message last, and a system message only first", fix);
  }
  return chat;
}

function splitOf(value: Fields, defaults: TaskDefaults, report: Report): Split | null {
  const { split = defaults.split } = value;
  if (splits.includes(split as Split)) return split as Split;
  return report(
    split === null && !("split" in value) ? "no split, here or in metadata.yaml" : `split = ${short(split)}`,
    `split: ${splits.join(" or ")}`,
    "Add a split to the line, or to metadata.yaml for all lines.",
  );
}

function verifierOf(
  value: Fields,
  defaults: TaskDefaults,
  { report, keep }: { readonly report: Report; readonly keep: (error: unknown) => null },
): VerifierSpec | null {
  if (value["verifier"] === undefined) {
    const fix = "Add a verifier to the line, or to metadata.yaml for all lines.";
    return defaults.verifier ?? report("no verifier, here or in metadata.yaml", "a verifier", fix);
  }
  try {
    return verifierSpec(value["verifier"]);
  } catch (error) {
    return keep(error);
  }
}

const gotOf = (value: Fields, name: string): string =>
  name in value
    ? `${name} = ${short(value[name])}`
    : `no ${name} (keys: ${Object.keys(value).join(", ") || "none"})`;

const short = (value: unknown): string => abbreviated(quoteValue(value));

/** Collects the mistakes in a folder, to report them together. */
export interface Mistakes {
  add(mistake: Omit<ErrorDetails, "code">): void;
  /** Adds a PeriodicEvalError with another place; throws any other error. */
  keep(error: unknown, place: string): void;
  /** @throws PeriodicEvalError `data` for one mistake, an AggregateError for several. */
  throwAny(): void;
}

/** The most mistakes in a message; the AggregateError's `errors` has all. */
const mostListed = 20;

export function mistakes(): Mistakes {
  const found: PeriodicEvalError[] = [];
  const add: Mistakes["add"] = (mistake) =>
    void found.push(new PeriodicEvalError({ ...mistake, code: "data" }));
  return {
    add,
    keep(error, place) {
      if (!PeriodicEvalError.is(error)) throw error;
      const { where, got, expected, fix, cause } = error;
      add({ where: where === "" ? place : `${place} ${where}`, got, expected, fix, cause });
    },
    throwAny() {
      if (found.length === 1) throw found[0]!;
      if (found.length === 0) return;
      const listed = found.slice(0, mostListed).map(({ message }) => message);
      const rest = found.length - listed.length;
      throw new AggregateError(found, [...listed, ...(rest > 0 ? [`and ${rest} more`] : [])].join("\n"));
    },
  };
}
