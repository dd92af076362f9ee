import * as z from "zod";
import { basename, dirname, join } from "node:path";
import {
  integerFromZero,
  abbreviated,
  isRecord,
  fileError,
  parseContent,
  type ContentPlace,
} from "@periodic-eval/contracts/options";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { strictJson } from "@periodic-eval/data";
import {
  nodeFiles,
  readIfPresent,
  removeTemporaryFiles,
  withLock,
  writeFileAtomic,
  type FileReader,
  type FileSystem,
} from "@periodic-eval/store";

/**
 * Checks that runs measured the same documents, so that they can be compared: equal suites may read different data. Runs whose
 * documents are unknown pass.
 *
 * @throws PeriodicEvalError `store` that names the task and both runs.
 */
export function checkDocuments(
  files: readonly {
    readonly path: string;
    readonly runs: readonly Pick<MetricsRun, "name" | "documents">[];
  }[],
): void {
  const known = new Map<string, { readonly hash: string; readonly name: string }>();
  for (const { path, runs } of files)
    for (const { name, documents } of runs)
      for (const [task, hash] of Object.entries(documents)) {
        const other = known.get(task) ?? { hash, name };
        if (other.hash !== hash) throw otherDocuments(path, task.split(" ")[0]!, other.name, name);
        known.set(task, other);
      }
}

const otherDocuments = (path: string, task: string, run: string, other: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "store",
    where: path,
    path: ["tasks", task],
    got: `different documents of ${task} in the runs "${run}" and "${other}"`,
    expected: "the same documents in all runs that are compared",
    fix: "Measure both with the same data (`data` of the suite, --data), or keep them in separate results folders (--results).",
  });

/** Lists where two values differ, each as `tasks.gsm8k.limit: 10 → 100`. */
function differences(before: Json, now: Json, path = ""): readonly string[] {
  if (isRecord(before) && isRecord(now)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(now)])];
    return keys.flatMap((key) =>
      differences(ownValue(before, key), ownValue(now, key), path === "" ? key : `${path}.${key}`),
    );
  }
  const [from, to] = [canonicalJson(before), canonicalJson(now)];
  return from === to ? [] : [`${path}: ${abbreviated(from)} → ${abbreviated(to)}`];
}

const ownValue = (map: { readonly [key: string]: Json }, key: string): Json =>
  Object.hasOwn(map, key) ? map[key]! : null;

const key = z.string().regex(/^[^/]+\/[^,]+,.+$/, 'a key as "task/metric,filter"');
const numbers = z.record(key, z.number("a number, or null if unknown").nullable(), "an object");
const text = z.string();
const json: z.ZodType<Json> = z.json();

const runSchema = z
  .object({
    name: text,
    method: text.nullable(),
    model: text,
    adapter: text.nullable(),
    /** Hash of the suite's settings. */
    config_hash: text,
    /** The suite's file; null if the suite was not a file. */
    config_path: text.nullable(),
    model_args: json,
    /** When the run began, ISO 8601. */
    timestamp: text,
    metrics: numbers,
    extras: z.record(z.string(), json, "an object"),
    // Other programs may leave out the following fields.
    /** Standard errors, by the same keys. */
    stderr: numbers.default({}),
    /** Number of rows, by the same keys. */
    n: z.record(key, integerFromZero, "an object").default({}),
    /** 95 % intervals, by the same keys. */
    ci95: z
      .record(
        key,
        z.tuple([z.number(), z.number()], "[low, high], or null if unknown").nullable(),
        "an object",
      )
      .default({}),
    higher_is_better: z.record(key, z.boolean("true, false or null").nullable(), "an object").default({}),
    /** Hash of everything that changes a number: model, adapter, tokenizer, settings, documents; null if unknown. */
    run_hash: text.nullable().default(null),
    /** The suite's settings; null if unknown. */
    suite: json.default(null),
    /** Hashes of the documents, by a suite's task and its version: `gsm8k 3.0`. Empty if unknown. */
    documents: z.record(z.string(), text, "an object").default({}),
  })
  .catchall(json);

const fileSchema = z.looseObject(
  { schema_version: z.literal(1, "1"), runs: z.array(runSchema, "an array") },
  "an object with schema_version and runs",
);

/** One model measured by a suite. */
export type MetricsRun = z.infer<typeof runSchema>;

/** A run for `appendRun`: fields with defaults are optional. */
export type GivenRun = z.input<typeof runSchema>;

/** The content of `metrics.json`: runs of one suite, in the order in which they ended. Names may repeat. */
export type MetricsFile = z.infer<typeof fileSchema>;

/**
 * Reads `metrics.json`, and keeps unknown keys.
 *
 * @throws PeriodicEvalError `store` with the file and the wrong field.
 */
export async function readMetrics(path: string, fs: FileReader = nodeFiles): Promise<MetricsFile> {
  const file = await readMetricsIfPresent(path, fs);
  if (file !== null) return file;
  throw fileError(
    path,
    "no such file",
    "the metrics.json of a results folder",
    "Check the path, or run a suite first.",
  );
}

/** Reads `metrics.json`; returns null if it does not exist. */
export async function readMetricsIfPresent(path: string, fs: FileReader): Promise<MetricsFile | null> {
  const content = await readIfPresent(path, fs);
  return content === null ? null : parseMetrics(path, content);
}

/** @throws PeriodicEvalError `store` with the file and the wrong field. */
export function parseMetrics(path: string, content: string): MetricsFile {
  const fix = "Restore the file, or move it away: it is damaged, or another program wrote it.";
  return parseJson(fileSchema, content, { code: "store", where: path, fix });
}

/**
 * Adds a run to `metrics.json`, and creates the file if needed. A lock orders concurrent processes, and the file is replaced
 * atomically. A run that the file already has (same name, hash and time) is not added again.
 *
 * @throws PeriodicEvalError `store` if the file is damaged or has runs of another suite; `data` for a run that cannot be read back.
 */
export async function appendRun(path: string, given: GivenRun, fs: FileSystem = nodeFiles): Promise<void> {
  const run = parseContent(runSchema, given, {
    code: "data",
    where: "appendRun",
    fix: "Correct the field; write null for unknown values.",
  });
  const [folder, lock] = [dirname(path), `.${basename(path, ".json")}.lock`];
  await withLock(
    join(folder, lock),
    async () => {
      await removeTemporaryFiles(folder, (file) => file === basename(path), fs);
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

/** Lists the first differences between two values. */
export function shortDifferences(before: Json, now: Json): string {
  const [first, second, third, ...rest] = differences(before, now);
  const more = rest.length === 0 ? [] : [`and ${rest.length} more`];
  return [first, second, third, ...more].filter((text) => text !== undefined).join("; ");
}

/**
 * Checks that a suite equals the suite of all runs in a file, so that these runs can be compared.
 *
 * @throws PeriodicEvalError `store` that lists the differences between the suites.
 */
export function checkSuite(
  path: string,
  { runs }: MetricsFile,
  { config_hash, suite }: Pick<MetricsRun, "config_hash" | "suite">,
): void {
  const other = runs.find((run) => run.config_hash !== config_hash);
  if (other === undefined) return;
  const isKnown = other.suite !== null && suite !== null;
  const differ = isKnown
    ? shortDifferences(other.suite, suite)
    : `config_hash: ${other.config_hash} → ${config_hash}`;
  throw fileError(
    path,
    `settings other than those of the run "${other.name}" in it (${differ})`,
    "one suite for all runs in a file, so that every method is measured with the same settings",
    `Choose another results folder (--results FOLDER), because ${dirname(path)} holds another suite; or use that suite.`,
  );
}

/**
 * Parses and checks the JSON content of a file.
 *
 * @throws PeriodicEvalError for what `strictJson` refuses, and for the first wrong field, with its `path`.
 */
export function parseJson<T>(schema: z.ZodType<T>, text: string, details: ContentPlace): T {
  const parsed = strictJson(text);
  if (parsed.fault === null) return parseContent(schema, parsed.value, details);
  throw new PeriodicEvalError({ ...details, ...parsed.fault });
}
