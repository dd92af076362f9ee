import { isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Json } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { checkKeys, checkName } from "@periodic-eval/core/internal";
import { readYaml } from "@periodic-eval/core/evaluations";
import { z } from "zod";
import type { TaskOptions } from "../tasks/task.ts";
import { parsed } from "../results/parse-json.ts";

const count = (least: number) => {
  const words = `a whole number of ${least} or more`;
  return z.int(words).min(least, words);
};
const text = z.string("a text").min(1, "a text");

const chatSchema = z
  .strictObject(
    {
      system: z.string("a text").optional(),
      fewshot_as_multiturn: z.boolean("true or false").optional(),
    },
    "null for plain text, or a map of system and fewshot_as_multiturn",
  )
  .nullable();

const taskSchema = z.strictObject(
  {
    /** Default: the task's own. */
    shots: count(0).optional(),
    /** The first so many documents of each subject. */
    limit: count(1).nullable().default(null),
    /** So many documents of all that `limit` leaves, drawn by the suite's seed; nested. */
    subsample: count(1).nullable().default(null),
    /** In place of the suite's. */
    chat: chatSchema.optional(),
    data: text.optional(),
    fewshot_pool: text.optional(),
  },
  "a map of settings, {} for a task's own",
);

const suiteSchema = z.strictObject({
  schema_version: z.literal(1, "1"),
  name: text,
  /** Of subsamples, and of what is sampled. */
  seed: count(0).default(42),
  /** Of the draws of examples. */
  fewshot_seed: count(0).default(1234),
  /** How prompts are put into a chat; null: plain text. */
  chat: chatSchema.default(null),
  tasks: z
    .record(z.string(), taskSchema, "a map of tasks")
    .refine((tasks) => Object.keys(tasks).length > 0, "at least one task"),
});

/** What a suite sets of one task. */
export type SuiteTask = z.infer<typeof taskSchema>;

/** What a suite's file holds; settings that are left out have their defaults. */
export type SuiteDefinition = z.input<typeof suiteSchema>;

/** What every method of a comparison is measured by, as its file has it. */
export type Suite = z.infer<typeof suiteSchema> & {
  /** `smokeOf` made it: too few documents to tell methods apart. */
  readonly smoke: boolean;
};

/** The suite that comes with the package: MMLU, GSM8K, TruthfulQA and IFEval. */
export const defaultSuitePath = fileURLToPath(new URL("../../suites/default.yaml", import.meta.url));

/**
 * Reads a suite's YAML.
 *
 * @throws PeriodicEvalError `config` for a wrong key or value, with the file and the key; `data` for what cannot be read.
 */
export async function readSuite(path: string): Promise<Suite> {
  return parseSuite((await readYaml(path, "suite")).value, path);
}

/** @throws PeriodicEvalError `config`. */
export function parseSuite(value: unknown, where: string): Suite {
  checkKeys(where, value as object, Object.keys(suiteSchema.shape));
  const { tasks } = value as { readonly tasks?: unknown };
  if (isMap(tasks)) {
    for (const [name, settings] of Object.entries(tasks)) {
      checkName(`${where}: tasks`, name);
      if (isMap(settings)) checkKeys(`${where}: tasks.${name}`, settings, Object.keys(taskSchema.shape));
    }
  }
  const fix = "Correct the value, or leave the key out for its default.";
  return { ...parsed(suiteSchema, value, { code: "config", where, fix }), smoke: false };
}

const isMap = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Documents of a task in a smoke run. */
const smokeDocuments = 10;

/**
 * The suite with 10 documents of each task, to see that everything runs. MMLU's are 10 of all subjects together (57
 * subjects of 10 would be 570), drawn as the suite's subsamples are; lm-evaluation-harness' `--limit 10` takes 10 a subject.
 */
export function smokeOf(suite: Suite): Suite {
  const tasks = Object.entries(suite.tasks).map(([name, settings]) => {
    const subsample = Math.min(settings.subsample ?? smokeDocuments, smokeDocuments);
    return [name, { ...settings, subsample }] as const;
  });
  return { ...suite, smoke: true, tasks: Object.fromEntries(tasks) };
}

/** What a suite sets: all but its name. */
export const settingsOf = ({ name: _name, ...settings }: Suite): Json =>
  JSON.parse(JSON.stringify(settings)) as Json;

/** The hash of what a suite sets: its name, comments and the order of keys do not count. */
export const hashOfSuite = (suite: Suite): string => hashJson(settingsOf(suite));

/**
 * What a task of the suite is opened with.
 *
 * @param root the folder that relative places of data are in.
 */
export function taskOptionsOf(
  suite: Suite,
  [name, settings]: readonly [string, SuiteTask],
  root: string,
): TaskOptions {
  const { shots, limit, subsample, data = name, fewshot_pool: pool } = settings;
  const chat = settings.chat === undefined ? suite.chat : settings.chat;
  return {
    data: placeOf(data, root),
    ...(shots !== undefined && { shots }),
    ...(pool !== undefined && { fewshotPool: placeOf(pool, root) }),
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

const placeOf = (path: string, root: string): string =>
  path.startsWith("hf:") || isAbsolute(path) ? path : join(root, path);
