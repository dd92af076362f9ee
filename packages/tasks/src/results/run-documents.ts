import { dirname, join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { isRecord } from "@periodic-eval/contracts/options";
import { nodeFiles, readIfPresent, type FileReader } from "@periodic-eval/store";
import * as z from "zod";
import type { MetricsRun } from "./metrics-file.ts";
import { parseJson } from "./parse-json.ts";

/** A run, and the hashes of the documents of its tasks, by task and version of the task. */
export interface RunDocuments {
  readonly name: string;
  readonly hashes: Readonly<Record<string, string>>;
}

/** Returns the hashes of the documents of a suite's tasks in a run's `identity`. */
export function documentsIn(name: string, identity: unknown, suite: unknown): RunDocuments {
  const [tasks, listed] = [identity, suite].map((value) => (isRecord(value) ? value["tasks"] : null));
  const hashes: Record<string, string> = {};
  for (const [task, settings] of Object.entries(isRecord(tasks) ? tasks : {})) {
    // Items of further evaluations may depend on the model.
    if (!isRecord(listed) || !Object.hasOwn(listed, task) || !isRecord(settings)) continue;
    const { items, version } = settings;
    if (typeof items === "string") hashes[`${task} ${String(version)}`] = items;
  }
  return { name, hashes };
}

const jobSchema = z.looseObject({}, "an object");

/** Reads the documents of a run from `jobs/<name>/results.json`; null if the file is missing or is another run's. */
async function readDocumentsOf(
  metrics: string,
  { name, run_hash: hash, suite }: MetricsRun,
  fs: FileReader,
): Promise<RunDocuments | null> {
  // Another program may have chosen the name: never read outside the folder.
  if (/[/\\]/.test(name) || name === "..") return null;
  const path = join(dirname(metrics), "jobs", name, "results.json");
  const text = await readIfPresent(path, fs);
  if (text === null) return null;
  const fix = "Restore the file, or delete it: it is damaged.";
  const { run, identity } = parseJson(jobSchema, text, { code: "store", where: path, fix });
  return isRecord(run) && run["run_hash"] === hash ? documentsIn(name, identity, suite) : null;
}

/**
 * Checks that runs measured the same documents, so that they can be compared: equal suites may read different data. Runs whose
 * documents are unknown pass.
 *
 * @param measured A run that is about to join them.
 * @throws PeriodicEvalError `store` that names the task and both runs.
 */
export async function checkDocuments(
  files: readonly { readonly path: string; readonly runs: readonly MetricsRun[] }[],
  measured: RunDocuments | null = null,
  fs: FileReader = nodeFiles,
): Promise<void> {
  const known = new Map<string, { readonly hash: string; readonly name: string }>();
  const add = ({ name, hashes }: RunDocuments, path: string) => {
    for (const [task, hash] of Object.entries(hashes)) {
      const other = known.get(task) ?? { hash, name };
      if (other.hash !== hash) throw otherDocuments(path, task.split(" ")[0]!, other.name, name);
      known.set(task, other);
    }
  };
  if (measured !== null) add(measured, "");
  for (const { path, runs } of files)
    for (const run of runs) {
      const documents = await readDocumentsOf(path, run, fs);
      if (documents !== null) add(documents, path);
    }
}

const otherDocuments = (path: string, task: string, one: string, other: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "store",
    where: path,
    path: ["tasks", task],
    got: `different documents of ${task} in the runs "${one}" and "${other}"`,
    expected: "the same documents in all runs that are compared",
    fix: "Measure both with the same data (`data` of the suite, --data), or keep them in separate results folders (--results).",
  });
