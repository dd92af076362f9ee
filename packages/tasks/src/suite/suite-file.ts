import { fileURLToPath } from "node:url";
import type { Json } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import {
  atWritten,
  checkName,
  isRecord,
  parseOptions,
  positiveInteger,
  integerFromZero,
  filledString,
} from "@periodic-eval/contracts/options";
import { readYaml } from "@periodic-eval/data";
import * as z from "zod";
import type { TaskOptions } from "../tasks/task.ts";
import { placeInRoot, sourceOfTask, type DataRoot } from "./task-data.ts";

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
    const { readConfigFile } = await import("@periodic-eval/core/config");
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
    ...(chat !== null && {
      chat: {
        ...(chat.system !== undefined && { system: chat.system }),
        ...(chat.fewshot_as_multiturn !== undefined && { fewshotAsMultiturn: chat.fewshot_as_multiturn }),
      },
    }),
  };
}
