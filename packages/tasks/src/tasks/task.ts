import * as z from "zod";
import { parseOptions, integerFromZero, filledString } from "@periodic-eval/contracts/options";
import type { AnyEvaluation, Json, Row } from "@periodic-eval/core";
import type { Subsample } from "@periodic-eval/core/evaluations";

/** How a prompt becomes a chat. Without it prompts are plain text, as in lm-evaluation-harness without `--apply_chat_template`. */
export interface ChatOptions {
  /** The system message. Default: no system message is passed. */
  readonly system?: string;
  /** Makes each example a user turn and an assistant turn, instead of one user turn with all examples. Default true. */
  readonly fewshotAsMultiturn?: boolean;
}

export interface TaskOptions {
  /**
   * Where the documents are: a folder with the task's layout (see the task), a file, or `hf:owner/dataset` on the Hugging Face
   * hub.
   */
  readonly data: string;
  /** Number of few-shot examples; default the task's `defaultShots`. */
  readonly shots?: number;
  /** Where few-shot examples come from: a folder, a file, or `hf:owner/dataset`; default the task's pool in `data`. */
  readonly fewshotPool?: string;
  /** Seed of Python's `Random` that draws the examples; default 1234, as in lm-evaluation-harness. */
  readonly fewshotSeed?: number;
  /** Keeps the first `limit` documents of each subject, in the file's order; null (default) for all. */
  readonly limit?: number | null;
  /** A seeded, nested subset of the documents that `limit` keeps, for use in the loop; null (default) for all. */
  readonly subsample?: Subsample;
  /** Default: no chat template. */
  readonly chat?: ChatOptions;
}

/** A published benchmark: one definition for callbacks, `Evaluator` and the command line. */
export interface Task {
  /** The name in lm-evaluation-harness: `arc_challenge`. */
  readonly name: string;
  /** The version of the lm-evaluation-harness task that it equals. */
  readonly version: string;
  /** The default of `shots`. */
  readonly defaultShots: number;
  /**
   * Returns the evaluation. Its metrics have the names of lm-evaluation-harness, with the filter unless it is `none`: `acc`,
   * `acc_norm`, `exact_match,strict-match`. Groups follow a slash: `acc/stem`.
   *
   * @throws PeriodicEvalError `config` for a wrong option. Wrong documents throw in `items`.
   */
  readonly open: (options: TaskOptions) => AnyEvaluation;
  /**
   * Returns the files and splits (`hf:owner/dataset/config/split`) that the evaluation of these options reads, so that they are
   * found, or downloaded, before a model loads. Without it, `items` finds them.
   *
   * @throws PeriodicEvalError `data` for a missing folder or file.
   */
  readonly sources?: (options: TaskOptions) => Promise<readonly string[]>;
  /** Fixed settings of the task that results list: generation, filters. */
  readonly settings?: Readonly<Record<string, Json>>;
}

/** The fields of a document in lm-evaluation-harness' samples files, besides its scores. */
export interface SampleDetail {
  /** The document's index in its split, or in its subject's split, from 0; null if the row belongs to no document. */
  readonly docId: number | null;
  /** The document, with the dataset's keys. */
  readonly doc: Json;
  readonly target: Json;
  /** By request: context and continuation, or prompt and generation settings. */
  readonly arguments: readonly (readonly Json[])[];
  /** By request, by repeat: a completion, or a log-likelihood and whether it is greedy. */
  readonly responses: readonly Json[];
  /** By filter, by request: the filtered responses. */
  readonly filtered: Readonly<Record<string, readonly Json[]>>;
}

/**
 * A task that can describe its rows for lm-evaluation-harness' samples files. Fields that `sample` leaves out come from the task's
 * family (`familyDetail`). For any other evaluation, samples hold item, prompt and row.
 */
export interface SampledTask extends Task {
  readonly sample?: (row: Row, item: Row) => Partial<SampleDetail>;
}

const places = "a folder, a file, or hf:owner/dataset";

/** Schemas of the options. */
export const chatShape = {
  system: z.string().meta({ fix: "Leave it out to pass no system message." }).optional(),
  fewshotAsMultiturn: z.boolean("true or false").meta({ fix: "Leave it out for true." }).optional(),
} satisfies Record<keyof ChatOptions, z.ZodType>;

const positive = "a positive integer, or null";

/** Schemas of the options. */
export const taskShape = {
  data: filledString(places).meta({ fix: "Say where the documents are." }),
  shots: integerFromZero.meta({ fix: "Leave it out for the task's default." }).optional(),
  fewshotPool: filledString(places).meta({ fix: "Leave it out for the task's pool." }).optional(),
  fewshotSeed: z.int("an integer").meta({ fix: "Leave it out for 1234." }).optional(),
  limit: z
    .int(positive)
    .positive(positive)
    .meta({ fix: "Leave it out for all documents." })
    .nullable()
    .optional(),
  // The task's family checks it.
  subsample: z.unknown().optional(),
  chat: z.strictObject(chatShape).optional(),
} satisfies Record<keyof TaskOptions, z.ZodType>;

/** @throws PeriodicEvalError `config` for a wrong option. */
export function checkTaskOptions(task: string, options: TaskOptions): void {
  parseOptions(`${task} options`, z.strictObject(taskShape), options);
}
