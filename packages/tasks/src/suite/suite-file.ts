import * as z from "zod";
import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  atWritten,
  camelCaseKeys,
  checkName,
  isRecord,
  parseOptions,
  positiveInteger,
  integerFromZero,
  filledString,
} from "@periodic-eval/contracts/options";
import type { Json } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { isHubSource, readYaml } from "@periodic-eval/data";
import { datasetOf } from "../tasks/datasets.ts";
import type { TaskOptions } from "../tasks/task.ts";

/** Where the tasks of a suite look for their documents. */
export interface DataRoot {
  /** A folder with one folder per task, or `hf:owner/dataset` for all tasks; null if the caller names neither. */
  readonly given: string | null;
  /** The folder of the suite's file. It is searched before the hub if no folder is given. */
  readonly folder: string;
}

/**
 * Returns the source of a task's documents:
 *
 * 1. `data` of the suite, if it is absolute or begins with `hf:`;
 * 2. for a task without `data`: the dataset that the caller gives;
 * 3. in the caller's folder, otherwise in that of the suite's file: `data`, or the task's own folder (see `folderNames`);
 * 4. if the caller names no folder and there is none: the caller's dataset, or that of a task that is part of this package. A
 *    folder that only the suite names is never replaced by the hub.
 *
 * @param data The suite's setting.
 */
export function sourceOfTask(task: string, data: string | undefined, { given, folder }: DataRoot): string {
  if (data !== undefined && (isHubSource(data) || isAbsolute(data))) return data;
  const dataset = given !== null && isHubSource(given) ? given : null;
  if (dataset !== null && data === undefined) return dataset;
  const root = dataset === null ? (given ?? folder) : folder;
  const names = folderNames(task);
  const known = datasetOf(task);
  const isUsual = data === undefined || names.includes(data);
  const places = [...(data === undefined ? [] : [data]), ...(isUsual ? names : [])].map((name) =>
    join(root, name),
  );
  const remote = dataset ?? (given === null ? known?.source : undefined);
  // The folder that `data get` writes.
  const missing = data === undefined && known !== null ? join(root, known.name) : places[0]!;
  return places.find((path) => existsSync(path)) ?? (isUsual ? remote : undefined) ?? missing;
}

/** Returns the path of another file of a suite: relative paths are in the folder of the data. */
export const placeInRoot = (path: string, { given, folder }: DataRoot): string =>
  isHubSource(path) || isAbsolute(path)
    ? path
    : join(given === null || isHubSource(given) ? folder : given, path);

/** The names of a task's folder, by preference: `mmlu_anatomy`, then `mmlu`. */
export function folderNames(task: string): readonly string[] {
  const words = task.split("_");
  return words.map((_, at) => words.slice(0, words.length - at).join("_"));
}

const text = filledString("a non-empty string");

const chatSchema = z
  .strictObject(
    {
      system: z.string().optional().describe("The system prompt. Default: none."),
      fewshot_as_multiturn: z
        .boolean("true or false")
        .optional()
        .describe("Whether few-shot examples become turns of the chat. Default: false."),
    },
    "null for plain text, or an object with system and fewshot_as_multiturn",
  )
  .nullable();

const taskSchema = z.strictObject(
  {
    shots: integerFromZero.optional().describe("Number of few-shot examples. Default: the task's."),
    limit: positiveInteger
      .nullable()
      .default(null)
      .describe("Keeps the first `limit` documents of each subject."),
    subsample: positiveInteger
      .nullable()
      .default(null)
      .describe(
        "The size of a nested subset of the documents that `limit` keeps, drawn with the suite's seed.",
      ),
    chat: chatSchema.optional().describe("Replaces the suite's `chat`."),
    data: text
      .optional()
      .describe(
        "A file or folder of documents, or hf:owner/dataset. Default: the folder of the task's name, then the hub.",
      ),
    fewshot_pool: text
      .optional()
      .describe("The documents from which few-shot examples are drawn. Default: the task's."),
  },
  "an object of settings, {} for the defaults",
);

/** Exported for the reference of the documentation. */
export const suiteSchema = z.strictObject({
  schema_version: z.literal(1, "1").describe("Version of this format."),
  name: text.describe("Name of the suite, in results and pages."),
  seed: integerFromZero.default(42).describe("Seed of subsamples and of sampled completions."),
  fewshot_seed: integerFromZero.default(1234).describe("Seed that draws few-shot examples."),
  chat: chatSchema.default(null).describe("How prompts become chats. Null: plain text."),
  tasks: z
    .record(z.string(), taskSchema, "an object of tasks")
    .refine((tasks) => Object.keys(tasks).length > 0, "at least one task")
    .describe("Settings of each task by its name; {} for the defaults."),
  evaluations: z
    .array(z.record(z.string(), z.unknown(), "an object such as { win_rate: prompts.jsonl }"), "an array")
    .optional()
    .describe(
      "Further evaluations by kind, as in a `periodic_eval` block: `{ win_rate: prompts.jsonl, reference: path/to/model }`.",
    ),
  engine: z
    .record(z.string(), z.unknown(), "an object such as { vllm: URL }")
    .optional()
    .describe(
      "Where the command line measures: `{ vllm: [URL, URL], model: NAME }`. Not a setting: results of all engines compare.",
    ),
});

/** A suite's settings of one task. */
export type SuiteTask = z.infer<typeof taskSchema>;

/** The content of a suite's file, in which settings are optional. */
export type SuiteDefinition = z.input<typeof suiteSchema>;

/** A list of tasks with fixed settings, by which all methods of a comparison are measured. */
export type Suite = z.infer<typeof suiteSchema> & {
  /** Whether `smokeOf` made it: it then has too few documents to compare methods. */
  readonly smoke: boolean;
};

/** The path of the suite in this package: MMLU, GSM8K, TruthfulQA and IFEval. */
export const defaultSuitePath = fileURLToPath(new URL("../../suites/default.yaml", import.meta.url));

/**
 * Reads a suite's YAML.
 *
 * @throws PeriodicEvalError `config` for a wrong key or value, with the file and the key; `data` for an unreadable file.
 */
export async function readSuite(path: string): Promise<Suite> {
  const { value } = await readYaml(path, { where: "suite", path: ["suite"] });
  return atSuite(path, () => parseSuite(value, path));
}

/**
 * Runs `action`, whose errors about a suite name the line of its file.
 *
 * @param file The suite's file; null if the suite was not a file.
 */
export async function atSuite<T>(file: string | null, action: () => T | Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (file === null) throw error;
    const { readConfigFile } = await import("@periodic-eval/data/config");
    const { where } = await readConfigFile(file);
    // Other paths are those of the caller's options.
    throw atWritten(error, {
      where,
      pathOf: (path) => (Object.hasOwn(suiteSchema.shape, path[0] ?? "") ? path : null),
    });
  }
}

/** @throws PeriodicEvalError `config`. */
export function parseSuite(value: unknown, where: string): Suite {
  const tasks = isRecord(value) && isRecord(value["tasks"]) ? value["tasks"] : {};
  for (const name of Object.keys(tasks)) checkName(`${where}: suite`, name, ["tasks"]);
  return { ...parseOptions(`${where}: suite`, suiteSchema, value), smoke: false };
}

/** Number of documents per task in a smoke run. */
const smokeDocuments = 10;

/** Kinds of `evaluations` with the option `limit`. */
const limitedKinds = ["benchmark", "win_rate", "kl_to_reference"];

/**
 * Returns the suite with 10 documents per task, to test that everything runs. Evaluations without the option `limit`, such as
 * `feedback`, stay whole. For MMLU these are 10 of all subjects together,
 * drawn like the suite's subsamples; lm-evaluation-harness' `--limit 10` takes 10 per subject, which is 570.
 */
export function smokeOf(suite: Suite): Suite {
  const tasks = Object.entries(suite.tasks).map(([name, settings]) => {
    const subsample = Math.min(settings.subsample ?? smokeDocuments, smokeDocuments);
    return [name, { ...settings, subsample }] as const;
  });
  const evaluations = suite.evaluations?.map((entry) => {
    const { limit } = entry;
    if (limit === undefined && !limitedKinds.some((kind) => kind in entry)) return entry;
    return {
      ...entry,
      limit: Math.min(typeof limit === "number" ? limit : smokeDocuments, smokeDocuments),
    };
  });
  return {
    ...suite,
    smoke: true,
    tasks: Object.fromEntries(tasks),
    ...(evaluations !== undefined && { evaluations }),
  };
}

/** Returns everything that a suite sets: all but its name and its engine. */
export const settingsOf = ({ name: _name, engine: _engine, ...settings }: Suite): Json =>
  JSON.parse(JSON.stringify(settings)) as Json;

/** Returns the hash of a suite's settings. Its name, comments and the order of keys do not count. */
export const hashOfSuite = (suite: Suite): string => hashJson(settingsOf(suite));

/** Returns the options with which a task of the suite is opened. */
export function taskOptionsOf(
  suite: Suite,
  [name, settings]: readonly [string, SuiteTask],
  root: DataRoot,
): TaskOptions {
  const { shots, limit, subsample, data, fewshot_pool: pool } = settings;
  const chat = settings.chat === undefined ? suite.chat : settings.chat;
  return {
    data: sourceOfTask(name, data, root),
    ...(shots !== undefined && { shots }),
    ...(pool !== undefined && { fewshotPool: placeInRoot(pool, root) }),
    fewshotSeed: suite.fewshot_seed,
    limit,
    subsample: subsample === null ? null : { n: subsample, seed: suite.seed },
    ...(chat !== null && { chat: camelCaseKeys(chat) }),
  };
}
