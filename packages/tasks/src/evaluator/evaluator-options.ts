import type {
  Awaitable,
  EvaluableModel,
  EvaluationRegistry,
  MeasurementPace,
  Json,
  OpenCheckpoint,
} from "@periodic-eval/core";
import {
  checkName,
  configError,
  isRecord,
  parseOptions,
  filledString,
  functionSchema,
  signalSchema,
} from "@periodic-eval/contracts/options";
import type { FileSystem } from "@periodic-eval/store";
import * as z from "zod";
import type { EvaluatorTasks } from "./own-evaluations.ts";
import type { MissingData } from "../suite/fetch-data.ts";
import type { SuiteDefinition } from "../suite/suite-file.ts";

export interface EvaluatorOptions {
  /** The run's name in `metrics.json`. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly name: string;
  /** Tasks, and custom evaluations such as `rolloutEvaluation(…)`: a list, or each under its name. A suite names some of them. */
  readonly tasks: EvaluatorTasks;
  /** Creates the entries of a suite's `evaluations`; default `evaluationsOf(tasks)`. */
  readonly evaluations?: EvaluationRegistry;
  /** A suite file, or its content. Default: all of `tasks`, with their default settings. `defaultSuitePath` is the shipped suite. */
  readonly suite?: string | SuiteDefinition;
  /** Measures 10 documents per task, with results in `<results>/smoke`; default false. */
  readonly smoke?: boolean;
  /**
   * The folder of relative data paths, with one folder per task, or `hf:owner/dataset` for all tasks. Default: the suite file's
   * folder (the current folder for the shipped suite or without a file), and for the tasks of this package without a folder there
   * their datasets on the hub, which are downloaded once.
   */
  readonly data?: string;
  /** The results folder; default `results`. */
  readonly results?: string;
  /** The training method, for results: `sft`, `dpo`. Default null. */
  readonly method?: string | null;
  /** The model's arguments, for results; default `pretrained=<model>`, with `peft=<adapter>`. */
  readonly modelArgs?: Json;
  /** Further fields for results. */
  readonly extras?: Readonly<Record<string, Json>>;
  readonly signal?: AbortSignal;
  /** Receives how many documents of a task are done, also each second while a call of the model runs. */
  readonly onProgress?: (progress: TaskProgress) => void;
  /** Receives each task whose data is downloaded from the hub, before the first request. */
  readonly onDownload?: (missing: MissingData) => void;
  /** Whether to write documents, prompts and answers; default true. MMLU takes about 12 KB per document. */
  readonly samples?: boolean;
  /** The clock; default the system's. */
  readonly now?: () => Date;
  /** File operations, for tests that let them fail. */
  readonly fs?: FileSystem;
}

export interface TaskProgress extends MeasurementPace {
  readonly task: string;
  readonly done: number;
  readonly total: number;
}

export interface CheckpointOptions extends EvaluatorOptions {
  /**
   * Opens the checkpoint: `openCheckpoint` of `@periodic-eval/models`, that of a served model, or a function for other models. It gets
   * the adapter as `path`.
   */
  readonly openModel: OpenCheckpoint;
  /**
   * Opens a checkpoint without its weights: `outlineCheckpoint` of `@periodic-eval/models`. The tasks' prompts are then checked before
   * the weights load. Default: after they load, before the first task is measured.
   */
  readonly outlineModel?: (
    folder: string,
    adapter: string | null,
  ) => Promise<{ readonly model: EvaluableModel }>;
  /** An adapter's folder or name on the hub; default none. */
  readonly adapter?: string | null;
  /** A tokenizer's folder or name on the hub; default the checkpoint's. */
  readonly tokenizer?: string | null;
}

/** A trainer whose live weights can be measured, such as those of `@periodic-eval/trainers`. */
export interface EvaluableTrainer {
  /** The model with its current weights. */
  readonly evaluableModel: EvaluableModel;
  /** Returns the current hash of everything in the model that changes a number; null if unknown. */
  modelFingerprint(): Awaitable<string | null>;
}

const path = filledString("a path").optional();
const nameOrNull = filledString("a non-empty string, or null").nullable().optional();

const giveTasks = "Give tasks of `tasks`, or an evaluation such as rolloutEvaluation(…).";

const trainerShape = {
  // `checkName` checks it.
  name: z.unknown().optional(),
  tasks: z
    .custom<EvaluatorTasks>(
      (value) => isRecord(value) || Array.isArray(value),
      "an array of tasks, or tasks by name",
    )
    .refine((tasks) => Object.keys(tasks ?? {}).length > 0, "at least one task")
    .meta({ fix: giveTasks }),
  evaluations: z.custom<EvaluationRegistry>(isRecord, "makers of evaluations by kind").optional(),
  suite: z
    .custom((value) => isRecord(value) || (typeof value === "string" && value !== ""), "a path or a suite")
    .optional(),
  smoke: z.boolean("true or false").optional(),
  data: path,
  results: path,
  method: nameOrNull,
  modelArgs: z.json().optional(),
  extras: z.record(z.string(), z.json(), "an object of JSON values").optional(),
  signal: signalSchema.optional(),
  onProgress: functionSchema("a function").optional(),
  onDownload: functionSchema("a function").optional(),
  samples: z.boolean("true or false").optional(),
  now: functionSchema("a function").optional(),
  fs: z.custom(isRecord, "file operations").optional(),
} satisfies Record<keyof EvaluatorOptions, z.ZodType>;

const checkpointShape = {
  ...trainerShape,
  openModel: functionSchema("a function that loads a checkpoint"),
  outlineModel: functionSchema("a function that opens a checkpoint without its weights").optional(),
  adapter: nameOrNull,
  tokenizer: nameOrNull,
} satisfies Record<keyof CheckpointOptions, z.ZodType>;

/** @throws PeriodicEvalError `config` for a wrong option. */
export function checkEvaluatorOptions(options: EvaluatorOptions, isCheckpoint: boolean): void {
  const where = `Evaluator.from${isCheckpoint ? "Checkpoint" : "Trainer"} options`;
  parseOptions(where, z.strictObject(isCheckpoint ? checkpointShape : trainerShape), options);
  checkName(where, options.name, ["name"]);
  const isList = Array.isArray(options.tasks);
  const seen = new Set<string>();
  for (const [key, task] of Object.entries(options.tasks)) {
    const at = { where, path: ["tasks", isList ? Number(key) : key] };
    if (!isRecord(task) || !("open" in task || "measure" in task))
      throw configError({ ...at, value: task, expected: "a task, or an evaluation", fix: giveTasks });
    const [got, expected] = [`a second task "${task.name}"`, "tasks with different names"];
    const fix = "Remove one, or give an evaluation another name.";
    if (seen.has(task.name)) throw configError({ ...at, got, expected, fix });
    seen.add(task.name);
  }
}
