import {
  codeOption,
  configError,
  isCount,
  isFilled,
  parseRow,
  pythonWhitespace,
  quoteValue,
} from "@periodic-eval/contracts/options";
import * as z from "zod";
import type { Json, Prompt, Row, Message } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import type { DataRow, PlacedRow } from "@periodic-eval/data";
import { drawExamples } from "../documents/few-shot.ts";
import { readDocuments } from "../documents/read-documents.ts";
import type { Documents } from "../families/family.ts";
import { hasSplits, locate, noPool, type TaskSplit } from "./split-source.ts";
import type { TaskOptions, ChatOptions } from "./task.ts";

/** One file of documents. Most tasks have one part; MMLU has one per subject. */
export interface TaskPart {
  /** The prefix of the documents' ids; null if the task has one part. */
  readonly subject: string | null;
  readonly groups: readonly string[];
  /** Comes before the examples. */
  readonly description: string;
  readonly test: TaskSplit;
  /** The split that examples are drawn from; null if the task has none. */
  readonly pool: TaskSplit | null;
}

/** Returns the parts of a task whose documents are in one file. */
export const onePart = (test: TaskSplit, pool: TaskSplit | null): readonly TaskPart[] => [
  { subject: null, groups: [], description: "", test, pool },
];

/** How rows become prompts. Q is the question that the task reads from a row. */
export interface TaskReading<Q> {
  readonly task: string;
  readonly parts: readonly TaskPart[];
  readonly read: (row: PlacedRow) => Q;
  /** Returns the question as it appears in the prompt. */
  readonly ask: (question: Q) => string;
  /** Returns the answer as it appears in an example. */
  readonly answer: (question: Q) => string;
  readonly sampler?: "random" | "first";
  /**
   * Always draws one example more. The harness does so when test and pool are the same split, to leave a document out of its
   * examples, and treats two unnamed splits as the same, whatever the files are.
   */
  readonly drawsOneMore?: boolean;
}

/** Schema of an index from 0 to `count` − 1; accepts strings, which CSV has. */
export const indexBelow = (count: number) =>
  z
    .custom<number | string>(
      (value) =>
        (typeof value === "number" || isFilled(value)) && isCount(Number(value)) && Number(value) < count,
      `0 to ${count - 1}`,
    )
    .transform(Number);

/** Returns the fields of a row that a task reads. */
export const fieldsOf = <S extends z.ZodType>({ row, place }: PlacedRow, schema: S): z.output<S> =>
  parseRow(place, schema, row, "Correct that row, or leave it out.");

/** A document of a task, with its prompt. */
export interface TaskDocument<Q> extends Row {
  readonly groups: readonly string[];
  readonly question: Q;
  readonly row: DataRow;
  readonly prompt: Prompt;
}

/** Returns the `doc_id` of lm-evaluation-harness' samples: the document's index in its subject's file. */
export const sampleOf = ({ id }: Row): { readonly docId: number } => ({
  docId: Number(id.split("/").at(-1)),
});

/** Returns a function that reads a task's documents once, so that measurements share them and the hub is asked once. */
export function documentsOnce<Q>(
  reading: TaskReading<Q>,
  options: TaskOptions,
  shots: number,
): () => Promise<Documents<TaskDocument<Q>>> {
  let read: Promise<Documents<TaskDocument<Q>>> | null = null;
  return async () => {
    read ??= taskDocuments(reading, options, shots);
    try {
      return await read;
    } catch (error) {
      // The next call tries again.
      read = null;
      throw error;
    }
  };
}

/**
 * Returns the sources of a task's documents and examples, in the order in which they are read.
 *
 * @throws PeriodicEvalError as `documentsOnce` for a source that cannot be found.
 */
export async function sourcesOf<Q>(
  reading: Pick<TaskReading<Q>, "task" | "parts">,
  options: TaskOptions,
  shots: number,
): Promise<readonly string[]> {
  const { task, parts } = reading;
  await checkFolders(reading, options);
  const sources = new Set<string>();
  for (const part of parts) {
    const { test, pool } = await placesOf(part, task, options, shots);
    sources.add(test.source);
    if (pool !== null) sources.add(pool.source);
  }
  return [...sources];
}

/**
 * Reads the documents of all parts, in their files' order, with examples drawn as in lm-evaluation-harness: each part has its
 * own random stream.
 *
 * @throws PeriodicEvalError `data` with file and line for a wrong row or a missing file; `config` for examples without a pool.
 */
async function taskDocuments<Q>(
  reading: TaskReading<Q>,
  options: TaskOptions,
  shots: number,
): Promise<Documents<TaskDocument<Q>>> {
  const documents: TaskDocument<Q>[] = [];
  const sources: Json[] = [];
  await checkFolders(reading, options);
  for (const part of reading.parts) {
    const read = await documentsOf(part, reading, options, shots);
    for (const document of read.documents) documents.push(document);
    sources.push(read.provenance);
  }
  const { fewshotSeed = 1234, limit = null, chat = null } = options;
  // A hash stands for the 57 parts of MMLU.
  const source = sources.length === 1 ? sources[0]! : { parts: sources.length, sha256: hashJson(sources) };
  return {
    documents,
    provenance: { source, shots, fewshot_seed: fewshotSeed, limit, chat: chat && { ...chat } },
  };
}

/** Requires folders or datasets: one file cannot hold the documents, or the examples, of several subjects. */
async function checkFolders<Q>(
  { task, parts }: Pick<TaskReading<Q>, "task" | "parts">,
  options: TaskOptions,
): Promise<void> {
  for (const option of parts.length > 1 ? (["data", "fewshotPool"] as const) : []) {
    const source = options[option];
    if (source === undefined || (await hasSplits(source, codeOption(task, option), task))) continue;
    throw configError({
      where: `${task} options`,
      path: [option],
      got: `the single source ${source}`,
      expected: `a folder, or hf:owner/dataset, with ${parts.length} subjects`,
      fix: "Name the folder that contains them, or use the task of one subject.",
    });
  }
}

async function documentsOf<Q>(
  part: TaskPart,
  { task, read, ask, answer, sampler = "random", drawsOneMore = false }: TaskReading<Q>,
  options: TaskOptions,
  shots: number,
): Promise<Documents<TaskDocument<Q>>> {
  const { fewshotSeed: seed = 1234, limit, chat } = options;
  const { subject, groups, description } = part;
  const name = subject === null ? task : `${task} ${subject}`;
  const places = await placesOf(part, task, options, shots);
  const test = await readDocuments(places.test.source, places.test.option);
  const pool = places.pool && (await readDocuments(places.pool.source, places.pool.option));
  const asked = test.rows.slice(0, limit ?? undefined).map((row) => ({ row: row.row, question: read(row) }));
  const isSameFile = drawsOneMore || pool?.sha256 === test.sha256;
  const same = (a: (typeof asked)[number], b: (typeof asked)[number]) =>
    quoteValue(a.row) === quoteValue(b.row);
  const examples = drawExamples(
    asked,
    {
      pool: pool === null ? [] : pool.rows.map((row) => ({ row: row.row, question: read(row) })),
      shots,
      seed,
      sampler,
      ...(isSameFile && { isSame: same }),
    },
    name,
  );
  const documents = asked.map(({ row, question }, at): TaskDocument<Q> => {
    const shown = examples[at]!.map((example): Example => [ask(example.question), answer(example.question)]);
    const prompt = harnessPrompt(description, shown, ask(question), chat);
    return { id: subject === null ? String(at) : `${subject}/${at}`, groups, question, row, prompt };
  });
  return { documents, provenance: { test: test.provenance, pool: pool?.provenance ?? null } };
}

/** Finds the documents of a part, and those that its examples are drawn from. */
async function placesOf(
  { test, pool }: TaskPart,
  task: string,
  { data, fewshotPool }: TaskOptions,
  shots: number,
) {
  const option = codeOption(task, "data");
  const documents = { source: await locate(data, test, option, task), option };
  if (shots === 0) return { test: documents, pool: null };
  const [source, ofPool] =
    fewshotPool === undefined ? [data, option] : [fewshotPool, codeOption(task, "fewshotPool")];
  const isFile = !(await hasSplits(source, ofPool, task));
  if (isFile ? fewshotPool === undefined : pool === null) throw noPool(task, shots);
  const located = pool === null ? source : await locate(source, pool, ofPool, task);
  return { test: documents, pool: { source: located, option: ofPool } };
}

/** A solved example. */
type Example = readonly [question: string, answer: string];

const targetDelimiter = " ";
const fewshotDelimiter = "\n\n";

/**
 * Builds a prompt as lm-evaluation-harness 0.4.13 does (`ConfigurableTask.fewshot_context`). Plain text is the description, then
 * each example as `question answer` and a blank line, then the question. A chat has one system message with system prompt and
 * description, if there is either; then each example is a user turn and an assistant turn, or everything is one user turn.
 *
 * Deviations: `system: ""` passes an empty system message, which keeps a template from injecting its default (the harness passes
 * none). If a template rejects system messages, the prompt is a template failure (the harness drops the message). Whitespace at
 * the end of a template's generation prompt belongs to the context of a choice (the harness scores it with the choice): the
 * log-likelihoods of all choices of a question shift by that of the whitespace, by up to 3.5e-3 nats on SmolLM2.
 */
function harnessPrompt(
  description: string,
  examples: readonly Example[],
  question: string,
  chat: ChatOptions | undefined,
): Prompt {
  if (chat === undefined) return { text: `${description}${asText(examples)}${question}` };
  const system = joined(chat.system ?? "", description);
  const turns = examples.flatMap(([asked, answered]): Message[] => [
    { role: "user", content: asked },
    { role: "assistant", content: answered },
  ]);
  const messages =
    chat.fewshotAsMultiturn === false
      ? [{ role: "user", content: `${asText(examples)}${question}` }]
      : [...turns, { role: "user", content: question }];
  const hasNoSystem = system === "" && chat.system === undefined;
  return hasNoSystem ? { messages } : { messages, system: { text: system } };
}

/** Returns the string between prompt and choice. In a chat the choice begins the assistant's turn, so it is empty. */
export const choiceDelimiter = (chat: ChatOptions | undefined): string =>
  chat === undefined ? targetDelimiter : "";

const asText = (examples: readonly Example[]): string =>
  examples.map(([question, answer]) => `${question}${targetDelimiter}${answer}${fewshotDelimiter}`).join("");

/** Joins two strings with a blank line, unless one of them has whitespace at the seam. */
function joined(system: string, description: string): string {
  if (system === "" || description === "") return system + description;
  const hasSpace = endsInSpace.test(system) || beginsWithSpace.test(description);
  return `${system}${hasSpace ? "" : fewshotDelimiter}${description}`;
}

const endsInSpace = new RegExp(`${pythonWhitespace}$`, "u");
const beginsWithSpace = new RegExp(`^${pythonWhitespace}`, "u");
