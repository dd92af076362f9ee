import { basename, dirname, join } from "node:path";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import {
  nodeFiles,
  readIfPresent,
  removeTemporaryFiles,
  withLock,
  writeFileAtomic,
  type FileReader,
  type FileSystem,
} from "@periodic-eval/core/snapshots";
import { z } from "zod";
import { differences } from "./differences.ts";
import { parsed, parsedText } from "./parse-json.ts";

const key = z.string().regex(/^[^/]+\/[^,]+,.+$/, 'a key as "task/metric,filter"');
const numbers = z.record(key, z.number("a number, or null where it is not known").nullable(), "an object");
const text = z.string("a text");
const json: z.ZodType<Json> = z.json();

const runSchema = z
  .object({
    name: text,
    method: text.nullable(),
    model: text,
    adapter: text.nullable(),
    /** Of the suite. */
    config_hash: text,
    /** The suite's file; null where it was no file. */
    config_path: text.nullable(),
    model_args: json,
    /** When it was begun, ISO 8601. */
    timestamp: text,
    metrics: numbers,
    extras: z.record(z.string(), json, "an object"),
    // From here on what we add: other programs may leave it out.
    /** Standard errors, by the same keys. */
    stderr: numbers.default({}),
    /** Rows that were observed, by the same keys. */
    n: z.record(key, z.int("a whole number").nonnegative("0 or more"), "an object").default({}),
    /** 95 % intervals, by the same keys. */
    ci95: z
      .record(
        key,
        z.tuple([z.number(), z.number()], "[low, high], or null where it is not known").nullable(),
        "an object",
      )
      .default({}),
    higher_is_better: z.record(key, z.boolean("true, false or null").nullable(), "an object").default({}),
    /** Of everything that changes a number: model, adapter, tokenizer, settings, documents; null where it is not told. */
    run_hash: text.nullable().default(null),
    /** What the suite sets; null where it is not told. */
    suite: json.default(null),
  })
  .catchall(json);

const fileSchema = z.looseObject(
  { schema_version: z.literal(1, "1"), runs: z.array(runSchema, "a list") },
  "an object with schema_version and runs",
);

/** One model measured by a suite. */
export type MetricsRun = z.infer<typeof runSchema>;

/** A run as it may be written: what only we tell may be left out. */
export type GivenRun = z.input<typeof runSchema>;

/** What `metrics.json` holds: runs of one suite, in the order in which they ended. A name may stand there several times. */
export type MetricsFile = z.infer<typeof fileSchema>;

/**
 * Reads `metrics.json`; keys that are not known are kept.
 *
 * @throws PeriodicEvalError `store` that names the file and the field that is wrong.
 */
export async function readMetrics(path: string, fs: FileReader = nodeFiles): Promise<MetricsFile> {
  const file = await readMetricsIfPresent(path, fs);
  if (file !== null) return file;
  throw new PeriodicEvalError({
    code: "store",
    where: path,
    got: "no such file",
    expected: "the metrics.json of a folder of results",
    fix: "Check the path, or run a suite first.",
  });
}

/** `readMetrics`; null where there is no file. */
export async function readMetricsIfPresent(path: string, fs: FileReader): Promise<MetricsFile | null> {
  const content = await readIfPresent(path, fs);
  if (content === null) return null;
  const fix = "Restore the file, or move it away: it was damaged since, or written by another program.";
  return parsedText(fileSchema, content, { code: "store", where: path, fix });
}

/**
 * Adds a run to `metrics.json`, creating it where it is absent. Processes that add at once wait for one another, and the
 * file is replaced whole; a run that is there already (of the same name, hash and time) is not added again.
 *
 * @throws PeriodicEvalError `store` where the file holds runs of another suite, or is damaged; `data` for a run that no reader
 *   would take.
 */
export async function appendRun(path: string, given: GivenRun, fs: FileSystem = nodeFiles): Promise<void> {
  const run = parsed(runSchema, given, {
    code: "data",
    where: "appendRun",
    fix: "Write what is unknown as null.",
  });
  const [folder, lock] = [dirname(path), `.${basename(path, ".json")}.lock`];
  await withLock(
    join(folder, lock),
    async () => {
      await removeTemporaryFiles(folder, (file) => file === lock || file === basename(path), fs);
      const file = (await readMetricsIfPresent(path, fs)) ?? { schema_version: 1, runs: [] };
      checkSuite(path, file, run);
      const isThere = file.runs.some(
        ({ name, run_hash, timestamp }) =>
          name === run.name && run_hash === run.run_hash && timestamp === run.timestamp,
      );
      if (isThere) return;
      await writeFileAtomic(path, `${JSON.stringify({ ...file, runs: [...file.runs, run] }, null, 2)}\n`, fs);
    },
    { fs },
  );
}

/**
 * Runs of one file can be compared: they are of one suite.
 *
 * @throws PeriodicEvalError `store` that says what the suites differ in.
 */
export function checkSuite(
  path: string,
  { runs }: MetricsFile,
  { config_hash, suite }: Pick<MetricsRun, "config_hash" | "suite">,
): void {
  const other = runs.find((run) => run.config_hash !== config_hash);
  if (other === undefined) return;
  const isTold = other.suite !== null && suite !== null;
  const differ = isTold
    ? differences(other.suite, suite)
    : [`config_hash: ${other.config_hash} → ${config_hash}`];
  throw new PeriodicEvalError({
    code: "store",
    where: path,
    got: `settings other than those of the run "${other.name}" in it (${differ.join("; ")})`,
    expected: "one suite for all runs of a file: no method is measured by settings of its own",
    fix: "Measure by that suite, or give another folder of results.",
  });
}
