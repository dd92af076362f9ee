import { type AnyEvaluation, type Row, type SourceOption, defineEvaluation } from "@periodic-eval/core";
import { nestedSubset } from "@periodic-eval/core/evaluations";
import { filledText, isFilled, parseRow } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { uniqueIds, type PlacedRow } from "@periodic-eval/data";
import { readDocuments } from "../documents/read-documents.ts";
import type { TaskOptions } from "../tasks/task.ts";
import type { WrittenPrompt } from "./win-rate.ts";

export interface FilePrompt extends Row {
  readonly prompt: WrittenPrompt;
}

export interface PromptFile {
  readonly prompts: readonly FilePrompt[];
  /** SHA-256 of the file, or of a dataset's files. */
  readonly sha256: string;
}

/** Keeps the first prompts, and of these a seeded, nested subset. */
export type PromptChoice = Pick<TaskOptions, "limit" | "subsample">;

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
  const prompts = withIds(rows, promptSchema).map(({ id, prompt }): FilePrompt => ({ id, prompt }));
  const first = prompts.slice(0, limit ?? undefined);
  return { prompts: subsample === null ? first : nestedSubset(first, subsample), sha256 };
}

const idSchema = z
  .custom<string | number>(
    (id) => isFilled(id) || Number.isSafeInteger(id),
    "a non-empty string or an integer of at most 2⁵³ − 1",
  )
  .meta({ fix: "Give each row an id of its own, or none." })
  .optional();

/** Reads rows with ids. A row without one has its number. */
function withIds<T extends { readonly id?: string | number | undefined }>(
  rows: readonly PlacedRow[],
  schema: z.ZodType<T>,
) {
  const check = uniqueIds("Give each row an id of its own, or none.");
  return rows.map(({ row, place }, at) => {
    const read = parseRow(place, schema, row, "Correct the row.");
    const id = String(read.id ?? at);
    check(id, place);
    return { ...read, id };
  });
}

const forms = "a string, an array of {role, content}, or {text}";
const message = z.object(
  { role: z.enum(["system", "user", "assistant"]), content: z.string() },
  "{role, content}",
);

const promptSchema = z.object({
  id: idSchema,
  prompt: z
    .union([filledText(), z.object({ text: filledText() }), z.array(message).min(1)], forms)
    .transform((prompt): WrittenPrompt => {
      if (typeof prompt === "string") return { messages: [{ role: "user", content: prompt }] };
      if (!Array.isArray(prompt)) return prompt;
      const [first, ...rest] = prompt;
      return first!.role === "system"
        ? { messages: rest, system: { text: first!.content } }
        : { messages: prompt };
    })
    .refine((prompt) => !("messages" in prompt) || prompt.messages.length > 0, "a user message")
    .meta({ fix: 'Write rows as {"id": "a", "prompt": "Why is the sky blue?"}.' }),
});

const answerSchema = z.object({
  id: idSchema,
  answer: z.string().meta({ fix: 'Write rows as {"id": "a", "answer": "…"}, with the ids of the prompts.' }),
});

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
  return Object.fromEntries(withIds(rows, answerSchema).map(({ id, answer }) => [id, answer]));
}
