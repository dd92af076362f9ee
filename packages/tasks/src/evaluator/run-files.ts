import { fileError, isRecord } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { basename, join } from "node:path";
import { snapshotSchema } from "@periodic-eval/contracts";
import type { PeriodicEvalError, Json, MetricValue } from "@periodic-eval/core";
import { metricKit } from "@periodic-eval/core/evaluations";
import { hashJson } from "@periodic-eval/core/random";
import {
  readIfPresent,
  removeTemporaryFiles,
  writeFileAtomic,
  type FileSystem,
  storeError,
} from "@periodic-eval/store";
import { dateId, harnessResults } from "../harness/results-file.ts";
import { metricKey, placeOf } from "../harness/entries.ts";
import type { HarnessPart } from "../harness/task-part.ts";
import { parseJson, shortDifferences, appendRun, type MetricsRun } from "../results/metrics-file.ts";
import { defaultSuitePath, hashOfSuite, settingsOf, type Suite } from "../suite/suite-file.ts";
import type { OpenTask } from "../suite/open-tasks.ts";
import type { CheckpointOptions, EvaluatorOptions } from "./evaluator-options.ts";
import type { Subject } from "./identity.ts";

/** The paths of one run's files. */
export type RunFiles = ReturnType<typeof runFiles>;

export function runFiles(results: string, name: string, isSmoke: boolean) {
  // Smoke runs have a separate folder.
  const folder = isSmoke ? join(results, "smoke") : results;
  return {
    folder,
    metrics: join(folder, "metrics.json"),
    partial: join(folder, `metrics.${name}.partial.json`),
    lock: join(folder, `.metrics.${name}.lock`),
    /** The folder of lm-evaluation-harness' files and `results.json`. */
    job: join(folder, "jobs", name),
  };
}

const json: z.ZodType<Json> = z.json();

const taskResultSchema = z.object({
  /** Contains metrics, intervals, provenance, timing. */
  snapshot: snapshotSchema,
  harness: z.custom<HarnessPart>(isRecord, "an object"),
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
 * Reads an interrupted run with the same identity; returns null if there is none with a finished task. Then removes the samples of its
 * first task.
 *
 * @param isKnown Whether the model has a fingerprint.
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
  const run = parsePartial(files, text);
  if (Object.keys(run.tasks).length === 0) {
    await removeSamples(files, run, fs);
    return null;
  }
  if (!isKnown) throw unknownWeights(files, run);
  checkSameRun(files, run, identity);
  return run;
}

async function removeSamples({ job }: RunFiles, { timestamp }: PartialRun, fs: FileSystem): Promise<void> {
  try {
    const names = (await fs.list(job)).map(({ name }) => name);
    const samples = names.filter((name) => name.endsWith(`_${dateId(timestamp)}.jsonl`));
    for (const name of samples) await fs.remove(join(job, name));
  } catch (error) {
    throw storeError(job, error);
  }
}

/** @throws PeriodicEvalError `store` for a damaged file. */
export function parsePartial({ partial }: RunFiles, text: string): PartialRun {
  const fix = "Delete the file to start over: it is damaged.";
  return parseJson(partialSchema, text, { code: "store", where: partial, fix });
}

export async function writePartial({ partial }: RunFiles, run: PartialRun, fs: FileSystem): Promise<void> {
  await writeFileAtomic(partial, `${JSON.stringify(run, null, 1)}\n`, fs);
}

function checkSameRun({ partial }: RunFiles, run: PartialRun, identity: Json): void {
  if (run.run_hash === hashJson(identity)) return;
  throw fileError(
    partial,
    `finished tasks with other settings (${shortDifferences(run.identity, identity)})`,
    `the settings of the interrupted run "${run.name}"`,
    "Restore those settings, use another name for the run, or delete the file to start over.",
  );
}

function unknownWeights({ partial }: RunFiles, { name }: PartialRun): PeriodicEvalError {
  return fileError(
    partial,
    `finished tasks of the run "${name}", and a model without a fingerprint`,
    "a fingerprint, to check that it is the same model",
    "Let openModel return a fingerprint, or delete the file to start over.",
  );
}

/** Removes drafts of interrupted writes. The caller must hold the run's lock. */
export async function removeRunDrafts({ folder, job, partial }: RunFiles, fs: FileSystem): Promise<void> {
  await removeTemporaryFiles(folder, (file) => file === basename(partial), fs);
  await removeTemporaryFiles(job, () => true, fs);
}

interface Finished {
  readonly partial: PartialRun;
  readonly suite: Suite;
  readonly subject: Subject;
  readonly open: readonly OpenTask[];
  readonly files: RunFiles;
  readonly fs: FileSystem;
  readonly options: EvaluatorOptions;
}

/**
 * Writes the results of a run whose tasks are all done. Each step can be repeated: after a crash the next `run` promotes it again,
 * and `metrics.json` has it once.
 */
export async function promote(finished: Finished): Promise<MetricsRun> {
  const { partial, suite, subject, files, fs } = finished;
  const run = recordOf(finished);
  const results = Object.values(partial.tasks);
  const seconds = results.reduce((sum, { snapshot }) => sum + snapshot.timing.total_seconds, 0);
  await writeFileAtomic(
    join(files.job, `results_${dateId(partial.timestamp)}.json`),
    harnessResults(
      results.map(({ harness }) => harness),
      { run, suite, model: subject.model.identity, seconds },
    ),
    fs,
  );
  const { tokenizer = null } = finished.options as Partial<CheckpointOptions>;
  const job = { schema_version: 1, run, tokenizer, identity: partial.identity, tasks: snapshotsOf(partial) };
  await writeFileAtomic(join(files.job, "results.json"), `${JSON.stringify(job, null, 2)}\n`, fs);
  await appendRun(files.metrics, run, fs);
  await fs.remove(files.partial).catch((error: unknown) => {
    throw storeError(files.partial, error);
  });
  return run;
}

/** Names the shipped suite in results, without a path of this machine. */
const shippedSuite = "@periodic-eval/tasks/suites/default.yaml";

const snapshotsOf = ({ tasks }: PartialRun) =>
  Object.fromEntries(Object.entries(tasks).map(([name, { snapshot }]) => [name, snapshot]));

/** Returns the hashes of the documents of a suite's tasks. Items of further evaluations may depend on the model. */
export const documentsOf = ({ tasks }: Suite, open: readonly OpenTask[]): MetricsRun["documents"] =>
  Object.fromEntries(
    open
      .filter(({ name }) => Object.hasOwn(tasks, name))
      .map(({ name, version, itemsHash }) => [`${name} ${version}`, itemsHash]),
  );

function recordOf({ partial, suite, subject, open, options }: Finished): MetricsRun {
  const values = open.flatMap((task) => {
    const names = Object.keys(task.evaluation.metrics(metricKit()));
    return Object.entries(partial.tasks[task.name]!.snapshot.metrics).map(
      ([key, value]) => [metricKey(task.name, placeOf(key, names)), value] as const,
    );
  });
  const all = <K extends keyof MetricValue>(field: K): Record<string, MetricValue[K]> =>
    Object.fromEntries(values.map(([key, value]) => [key, value[field]]));
  const { name, adapter } = subject;
  const { suite: suitePath } = options;
  const args = adapter === null ? `pretrained=${name}` : `pretrained=${name},peft=${adapter}`;
  return {
    name: partial.name,
    method: options.method ?? null,
    model: name,
    adapter,
    config_hash: hashOfSuite(suite),
    config_path:
      typeof suitePath !== "string" ? null : suitePath === defaultSuitePath ? shippedSuite : suitePath,
    model_args: options.modelArgs ?? args,
    timestamp: partial.timestamp,
    metrics: all("value"),
    stderr: all("stderr"),
    n: all("n"),
    ci95: all("ci95"),
    higher_is_better: all("higher_is_better"),
    run_hash: partial.run_hash,
    suite: settingsOf(suite),
    documents: documentsOf(suite, open),
    extras: { ...options.extras },
  };
}
