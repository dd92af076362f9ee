import {
  type AnyEvaluation,
  type Prompt,
  type Row,
  type SourceOption,
  defineEvaluation,
} from "@periodic-eval/core";
import { nestedSubset, type Subsample } from "@periodic-eval/core/evaluations";
import { dataError, isFilled, isRecord, quoteValue } from "@periodic-eval/contracts/options";
import { uniqueIds, type PlacedRow } from "@periodic-eval/data";
import { readDocuments } from "../documents/read-documents.ts";

export interface FilePrompt extends Row {
  readonly prompt: Prompt;
}

export interface PromptFile {
  readonly prompts: readonly FilePrompt[];
  /** SHA-256 of the file, or of a dataset's files. */
  readonly sha256: string;
}

export interface PromptChoice {
  /** Keeps the first prompts. */
  readonly limit?: number | null;
  /** A seeded, nested subset of these. */
  readonly subsample?: Subsample;
}

/**
 * Reads prompts: rows of `{prompt, id?}` in a file or a dataset on the hub. A prompt is a string, which becomes a chat with one user
 * turn; an array of messages `{role, content}`; or `{text}`, which is completed as it is. Without an id, a row has its number
 * from 0.
 *
 * @param option The option that holds the source, for errors; or only its place.
 * @throws PeriodicEvalError `data` for a source that cannot be read, and the first wrong row.
 */
export async function readPrompts(
  source: string,
  option: SourceOption | string,
  { limit = null, subsample = null }: PromptChoice = {},
): Promise<PromptFile> {
  const { rows, sha256 } = await readDocuments(source, option);
  const idOf = rowIds();
  const prompts = rows.map((row, at): FilePrompt => ({ id: idOf(row, at), prompt: promptOf(row) }));
  const first = prompts.slice(0, limit ?? undefined);
  return { prompts: subsample === null ? first : nestedSubset(first, subsample), sha256 };
}

/** Returns a function that gives the id of a row; without one, its number. */
function rowIds(): (row: PlacedRow, at: number) => string {
  const fix = "Give each row an id of its own, or none.";
  const check = uniqueIds(fix);
  return ({ row, place }, at) => {
    const { id = at } = row;
    if (!isFilled(id) && !Number.isSafeInteger(id)) {
      const expected = "id: a non-empty string or an integer of at most 2⁵³ − 1";
      throw dataError(place, `id = ${quoteValue(id)}`, expected, fix);
    }
    const name = `${id as string | number}`;
    check(name, place);
    return name;
  };
}

const roles = ["system", "user", "assistant"];

function promptOf(row: PlacedRow): Prompt {
  const { prompt } = row.row;
  const expected = "prompt: a string, an array of {role, content}, or {text}";
  if (isFilled(prompt)) return { messages: [{ role: "user", content: prompt }] };
  if (isRecord(prompt) && isFilled(prompt["text"])) return { text: prompt["text"] };
  if (!Array.isArray(prompt) || prompt.length === 0) {
    const got =
      prompt === undefined ? `no prompt (keys: ${Object.keys(row.row).join(", ")})` : quoteValue(prompt, 58);
    throw wrong(row, got, expected);
  }
  const messages = prompt.map((message) => {
    const { role, content } = isRecord(message) ? message : {};
    if (typeof role === "string" && roles.includes(role) && typeof content === "string")
      return { role: role as "user", content };
    throw wrong(
      row,
      quoteValue(message, 58),
      `messages of {role, content} with a role of ${roles.join(", ")}`,
    );
  });
  const [first, ...others] = messages;
  const isSystem = (first!.role as string) === "system";
  if (isSystem && others.length === 0) throw wrong(row, "only a system message", "a user message");
  return isSystem ? { messages: others, system: { text: first!.content } } : { messages };
}

const wrong = ({ place }: PlacedRow, got: string, expected: string) =>
  dataError(place, got, expected, 'Write rows as {"id": "a", "prompt": "Why is the sky blue?"}.');

/** An evaluation that only holds prompts, for evaluations that compare distributions after them. */
export const promptsEvaluation = ({ prompts, sha256 }: PromptFile): AnyEvaluation =>
  defineEvaluation({
    name: "prompts",
    version: "prompts-1",
    needs: [],
    items: () => prompts,
    provenance: () => ({ prompts_sha256: sha256 }),
    prompts: (_, items) => items.map(({ prompt }) => prompt),
    measure: async (_, items) => items,
    answers: null,
    metrics: () => ({}),
  });

/**
 * Reads the answers of a reference: rows of `{id, answer}`.
 *
 * @throws PeriodicEvalError `data` for a source that cannot be read, and the first wrong row.
 */
export async function readAnswers(
  source: string,
  option: SourceOption | string,
): Promise<Readonly<Record<string, string>>> {
  const { rows } = await readDocuments(source, option);
  const idOf = rowIds();
  const answers = rows.map((row, at) => {
    const { answer } = row.row;
    if (typeof answer === "string") return [idOf(row, at), answer] as const;
    throw dataError(
      row.place,
      answer === undefined ? `no answer (keys: ${Object.keys(row.row).join(", ")})` : quoteValue(answer, 58),
      "answer: a string",
      'Write rows as {"id": "a", "answer": "…"}, with the ids of the prompts.',
    );
  });
  return Object.fromEntries(answers);
}
