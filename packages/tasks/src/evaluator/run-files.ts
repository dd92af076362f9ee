import { basename, join } from "node:path";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import {
  readIfPresent,
  removeTemporaryFiles,
  snapshotSchema,
  writeFileAtomic,
  type FileSystem,
} from "@periodic-eval/core/snapshots";
import { z } from "zod";
import { differences } from "../results/differences.ts";
import { dateId } from "../harness/results-file.ts";
import { harnessPartSchema } from "../harness/task-part.ts";
import { parsedText } from "../results/parse-json.ts";

/** Where the files of one run are. Smoke runs have a folder of their own, so that nothing of them is beside the others. */
export interface RunFiles {
  readonly folder: string;
  readonly metrics: string;
  readonly partial: string;
  readonly lock: string;
  /** Of lm-evaluation-harness' files and `results.json`. */
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
  /** Intervals, provenance, timing. */
  snapshot: snapshotSchema,
  harness: harnessPartSchema,
});

/** A task that was measured. */
export type TaskResult = z.infer<typeof taskResultSchema>;

const partialSchema = z.object({
  schema_version: z.literal(1, "1"),
  name: z.string(),
  /** When the run was begun; its files are named after it. */
  timestamp: z.string(),
  /** Of `identity`. */
  run_hash: z.string(),
  /** Everything that changes a number. */
  identity: json,
  /** The tasks that are done. */
  tasks: z.record(z.string(), taskResultSchema),
});

/** `metrics.<name>.partial.json`: a run on its way. */
export type PartialRun = z.infer<typeof partialSchema>;

/**
 * The run that was begun, of the same identity; null where there is none, or none that got as far as a task.
 *
 * @throws PeriodicEvalError `store` where tasks were measured of something else, or of weights that cannot be told to be
 *   the same, and for a damaged file.
 */
export async function goOnFrom(
  files: RunFiles,
  { identity, isKnown }: { readonly identity: Json; readonly isKnown: boolean },
  fs: FileSystem,
): Promise<PartialRun | null> {
  const text = await readIfPresent(files.partial, fs);
  const fix = "Delete the file to begin anew: it was damaged since it was written.";
  if (text === null) return null;
  const found = parsedText(partialSchema, text, { code: "store", where: files.partial, fix });
  if (Object.keys(found.tasks).length > 0) {
    if (!isKnown) throw unknownWeights(files, found);
    checkSameRun(files, found, identity);
    return found;
  }
  // The first task may have left samples.
  const names = (await fs.list(files.job)).map(({ name }) => name);
  const samples = names.filter((name) => name.endsWith(`_${dateId(found.timestamp)}.jsonl`));
  for (const name of samples) await fs.remove(join(files.job, name));
  return null;
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
    got: `tasks measured of something else (${shown}${more})`,
    expected: `the run "${found.name}" that was begun`,
    fix: "Go on with what it was begun with, give the run another name, or delete the file to begin anew.",
  });
}

function unknownWeights({ partial }: RunFiles, { name }: PartialRun): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "store",
    where: partial,
    got: `measured tasks of the run "${name}", and a model that does not tell its weights`,
    expected: "a fingerprint by which to tell that it is the same model",
    fix: "Let openModel return a fingerprint, or delete the file to begin anew.",
  });
}

/** What writes that did not end left behind; for the holder of the run's lock. */
export async function sweep({ folder, job, partial, lock }: RunFiles, fs: FileSystem): Promise<void> {
  const own = [partial, lock].map((path) => basename(path));
  await removeTemporaryFiles(folder, (file) => own.includes(file), fs);
  await removeTemporaryFiles(job, () => true, fs);
}
