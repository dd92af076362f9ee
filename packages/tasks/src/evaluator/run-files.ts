import { basename, join } from "node:path";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import {
  readIfPresent,
  removeTemporaryFiles,
  storeError,
  writeFileAtomic,
  type FileSystem,
} from "@periodic-eval/store";
import { snapshotSchema } from "@periodic-eval/contracts";
import * as z from "zod";
import { differences } from "../results/differences.ts";
import { dateId } from "../harness/results-file.ts";
import { harnessPartSchema } from "../harness/task-part.ts";
import { parseJson } from "../results/parse-json.ts";

/** The paths of one run's files. Smoke runs have a separate folder. */
export interface RunFiles {
  readonly folder: string;
  readonly metrics: string;
  readonly partial: string;
  readonly lock: string;
  /** The folder of lm-evaluation-harness' files and `results.json`. */
  readonly job: string;
}

export function runFiles(results: string, name: string, isSmoke: boolean): RunFiles {
  const folder = isSmoke ? join(results, "smoke") : results;
  return {
    folder,
    metrics: join(folder, "metrics.json"),
    partial: join(folder, `metrics.${name}.partial.json`),
    lock: join(folder, `.metrics.${name}.lock`),
    job: join(folder, "jobs", name),
  };
}

const json: z.ZodType<Json> = z.json();
const numbers = z.record(z.string(), z.number().nullable());

const taskResultSchema = z.object({
  metrics: numbers,
  stderr: numbers,
  n: z.record(z.string(), z.int()),
  ci95: z.record(z.string(), z.tuple([z.number(), z.number()]).nullable()),
  higher_is_better: z.record(z.string(), z.boolean().nullable()),
  /** Contains intervals, provenance, timing. */
  snapshot: snapshotSchema,
  harness: harnessPartSchema,
});

/** The result of a measured task. */
export type TaskResult = z.infer<typeof taskResultSchema>;

const partialSchema = z.object({
  schema_version: z.literal(1, "1"),
  name: z.string(),
  /** When the run began; part of its files' names. */
  timestamp: z.string(),
  /** Hash of `identity`. */
  run_hash: z.string(),
  /** Everything that changes a number. */
  identity: json,
  /** The results of finished tasks. */
  tasks: z.record(z.string(), taskResultSchema),
});

/** The content of `metrics.<name>.partial.json`: an unfinished run. */
export type PartialRun = z.infer<typeof partialSchema>;

/**
 * Reads an interrupted run with the same identity; returns null if there is none, or it has no finished task.
 *
 * @throws PeriodicEvalError `store` if the finished tasks measured something else, if the weights cannot be compared, and for
 *   a damaged file.
 */
export async function readInterrupted(
  files: RunFiles,
  { identity, isKnown }: { readonly identity: Json; readonly isKnown: boolean },
  fs: FileSystem,
): Promise<PartialRun | null> {
  const text = await readIfPresent(files.partial, fs);
  if (text === null) return null;
  const found = parsePartial(files, text);
  if (Object.keys(found.tasks).length > 0) {
    if (!isKnown) throw unknownWeights(files, found);
    checkSameRun(files, found, identity);
    return found;
  }
  // An interrupted first task may have left samples.
  try {
    const names = (await fs.list(files.job)).map(({ name }) => name);
    const samples = names.filter((name) => name.endsWith(`_${dateId(found.timestamp)}.jsonl`));
    for (const name of samples) await fs.remove(join(files.job, name));
  } catch (error) {
    throw storeError(files.job, error);
  }
  return null;
}

/** @throws PeriodicEvalError `store` for a damaged file. */
export function parsePartial({ partial }: RunFiles, text: string): PartialRun {
  const fix = "Delete the file to start over: it is damaged.";
  return parseJson(partialSchema, text, { code: "store", where: partial, fix });
}

export async function writePartial({ partial }: RunFiles, run: PartialRun, fs: FileSystem): Promise<void> {
  await writeFileAtomic(partial, `${JSON.stringify(run, null, 1)}\n`, fs);
}

function checkSameRun({ partial }: RunFiles, found: PartialRun, identity: Json): void {
  if (found.run_hash === hashJson(identity)) return;
  const other = differences(found.identity, identity);
  const shown = other.slice(0, 5).join("; ");
  const more = other.length > 5 ? `; and ${other.length - 5} more` : "";
  throw new PeriodicEvalError({
    code: "store",
    where: partial,
    got: `finished tasks with other settings (${shown}${more})`,
    expected: `the settings of the interrupted run "${found.name}"`,
    fix: "Restore those settings, use another name for the run, or delete the file to start over.",
  });
}

function unknownWeights({ partial }: RunFiles, { name }: PartialRun): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "store",
    where: partial,
    got: `finished tasks of the run "${name}", and a model without a fingerprint`,
    expected: "a fingerprint, to check that it is the same model",
    fix: "Let openModel return a fingerprint, or delete the file to start over.",
  });
}

/** Removes drafts of interrupted writes. The caller must hold the run's lock. */
export async function removeRunDrafts({ folder, job, partial }: RunFiles, fs: FileSystem): Promise<void> {
  await removeTemporaryFiles(folder, (file) => file === basename(partial), fs);
  await removeTemporaryFiles(job, () => true, fs);
}
