import { PeriodicEvalError, type Json, type Prompt, type Row } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { quoteValue } from "@periodic-eval/core/internal";
import { drawExamples } from "../documents/few-shot.ts";
import { readDocuments, type ReadDocuments } from "../documents/read-documents.ts";
import type { DataRow, PlacedRow } from "../documents/rows.ts";
import type { Documents } from "../families/family.ts";
import { harnessPrompt } from "./harness-prompt.ts";
import { hasSplits, locate, noPool, type TaskSplit } from "./split-source.ts";
import type { TaskOptions } from "./task.ts";

/** What is asked of one file of documents; most tasks have one part, MMLU one a subject. */
export interface TaskPart {
  /** Begins the documents' ids; null where the task has one part. */
  readonly subject: string | null;
  readonly groups: readonly string[];
  /** Stands before the examples. */
  readonly description: string;
  readonly test: TaskSplit;
  /** Where examples are drawn from; null: the task has no such split. */
  readonly pool: TaskSplit | null;
}

/** How rows become prompts. Q is a question as the task reads it from a row. */
export interface TaskReading<Q> {
  readonly task: string;
  readonly parts: readonly TaskPart[];
  readonly read: (row: PlacedRow) => Q;
  /** The question as it is asked. */
  readonly ask: (question: Q) => string;
  /** Its answer in an example. */
  readonly answer: (question: Q) => string;
  readonly sampler?: "random" | "first";
  /**
   * The harness leaves a document out of its examples where test and pool are one split, and takes two that a task does not
   * name for one: it then draws one example more, whatever the files are.
   */
  readonly drawsOneMore?: boolean;
}

/** A document of a task, its prompt formed. */
export interface TaskDocument<Q> extends Row {
  readonly groups: readonly string[];
  readonly question: Q;
  /** As it was read. */
  readonly row: DataRow;
  readonly prompt: Prompt;
}

/** Of a document in lm-evaluation-harness' samples: its place in its subject's file. */
export const sampleOf = ({ id }: Row): { readonly docId: number } => ({
  docId: Number(id.split("/").at(-1)),
});

/** The documents of an opened task, read once: at every look the same, and no second time from the hub. */
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
      // What failed may be there the next time.
      read = null;
      throw error;
    }
  };
}

/**
 * Documents of all parts in their files' order, each with examples drawn as lm-evaluation-harness does: a part draws from
 * a stream of its own.
 *
 * @throws PeriodicEvalError `data` with file and line for a wrong row or a file that is not there, `config` where
 *   examples are asked for and there are none.
 */
async function taskDocuments<Q>(
  reading: TaskReading<Q>,
  options: TaskOptions,
  shots: number,
): Promise<Documents<TaskDocument<Q>>> {
  const documents: TaskDocument<Q>[] = [];
  const sources: Json[] = [];
  if (reading.parts.length > 1) await checkFolders(reading, options);
  for (const part of reading.parts) {
    const read = await documentsOf(part, reading, options, shots);
    documents.push(...read.documents);
    sources.push(read.provenance);
  }
  const { fewshotSeed = 1234, limit = null, chat = null } = options;
  // Of MMLU's 57 parts a hash tells enough.
  const source = sources.length === 1 ? sources[0]! : { parts: sources.length, sha256: hashJson(sources) };
  return {
    documents,
    provenance: { source, shots, fewshot_seed: fewshotSeed, limit, chat: chat && { ...chat } },
  };
}

/** One file cannot hold the documents of several subjects, nor their examples. */
async function checkFolders<Q>({ task, parts }: TaskReading<Q>, options: TaskOptions): Promise<void> {
  for (const option of ["data", "fewshotPool"] as const) {
    const source = options[option];
    if (source === undefined || (await hasSplits(source, `${task}.${option}`))) continue;
    throw new PeriodicEvalError({
      code: "config",
      where: `${task}.${option}`,
      got: `the one source ${source}`,
      expected: `a folder, or hf:owner/dataset, of ${parts.length} subjects`,
      fix: "Name the folder that holds them, or the task of one subject.",
    });
  }
}

async function documentsOf<Q>(
  part: TaskPart,
  { task, read, ask, answer, sampler = "random", drawsOneMore = false }: TaskReading<Q>,
  options: TaskOptions,
  shots: number,
): Promise<Documents<TaskDocument<Q>>> {
  const { data, fewshotSeed: seed = 1234, limit, chat } = options;
  const { subject, groups, description } = part;
  const name = subject === null ? task : `${task} ${subject}`;
  const test = await readDocuments(await locate(data, part.test, `${task}.data`), `${task}.data`);
  const pool = shots === 0 ? null : await poolOf(part, task, options, shots);
  const asked = test.rows.slice(0, limit ?? undefined).map((row) => ({ row: row.row, question: read(row) }));
  const isOwn = drawsOneMore || pool?.sha256 === test.sha256;
  const same = (a: (typeof asked)[number], b: (typeof asked)[number]) =>
    quoteValue(a.row) === quoteValue(b.row);
  const examples = drawExamples(
    asked,
    {
      pool: pool === null ? [] : pool.rows.map((row) => ({ row: row.row, question: read(row) })),
      shots,
      seed,
      sampler,
      ...(isOwn && { isSame: same }),
    },
    name,
  );
  const documents = asked.map(({ row, question }, at): TaskDocument<Q> => {
    const shownExamples = examples[at]!.map((one) => ({
      question: ask(one.question),
      answer: answer(one.question),
    }));
    const prompt = harnessPrompt({ description, examples: shownExamples, question: ask(question), chat });
    return { id: subject === null ? String(at) : `${subject}/${at}`, groups, question, row, prompt };
  });
  return { documents, provenance: { test: test.provenance, pool: pool?.provenance ?? null } };
}

async function poolOf(
  { pool }: TaskPart,
  task: string,
  { data, fewshotPool }: TaskOptions,
  shots: number,
): Promise<ReadDocuments> {
  const where = `${task}.${fewshotPool === undefined ? "data" : "fewshotPool"}`;
  const source = fewshotPool ?? data;
  const isFile = !(await hasSplits(source, where));
  if (fewshotPool === undefined && (isFile || pool === null)) throw noPool(task, shots);
  if (!isFile && pool === null) throw noPool(task, shots);
  return readDocuments(pool === null ? source : await locate(source, pool, where), where);
}
