import { PeriodicEvalError, type Awaitable, type EvaluableModel, type Json } from "@periodic-eval/core";
import { checkKeys, checkName, quoteValue } from "@periodic-eval/core/internal";
import type { FileSystem } from "@periodic-eval/core/snapshots";
import { z } from "zod";
import { checkRegistry, type TaskRegistry } from "../suite/open-tasks.ts";
import { parsed } from "../results/parse-json.ts";
import type { SuiteDefinition } from "../suite/suite-file.ts";

export interface EvaluatorOptions {
  /** What the run is called in `metrics.json`. Matches `[A-Za-z0-9][\w.-]*`. */
  readonly name: string;
  /** Tasks that suites can name. */
  readonly tasks: TaskRegistry;
  /** The file of the suite, or what one would hold; by default the package's (`defaultSuitePath`). */
  readonly suite?: string | SuiteDefinition;
  /** 10 documents of each task, into `<results>/smoke`; default false. */
  readonly smoke?: boolean;
  /** The folder that a suite's relative places of data are in; default that of the suite's file, the current one for the default suite and for one that is no file. */
  readonly data?: string;
  /** Default `results`. */
  readonly results?: string;
  /** How the model was trained, as results tell it: `sft`, `dpo`. Default null. */
  readonly method?: string | null;
  /** Of the model, as results tell it; default `pretrained=<model>`, and `peft=<adapter>`. */
  readonly modelArgs?: Json;
  /** Whatever else results shall tell. */
  readonly extras?: Readonly<Record<string, Json>>;
  readonly signal?: AbortSignal;
  /** Told how many documents of a task are done. */
  readonly onProgress?: (progress: TaskProgress) => void;
  /** Whether documents, prompts and answers are written; default true. MMLU's take about 12 KB a document. */
  readonly samples?: boolean;
  /** Default the system's time. */
  readonly now?: () => Date;
  /** For tests: file operations that fail or die. */
  readonly fs?: FileSystem;
}

export interface TaskProgress {
  readonly task: string;
  readonly done: number;
  readonly total: number;
}

export interface CheckpointOptions extends EvaluatorOptions {
  /** Loads the checkpoint; `periodic-eval` has one for our models. */
  readonly openModel: OpenModel;
  /** An adapter's folder, or its name on the hub; default none. */
  readonly adapter?: string | null;
  /** A tokenizer's folder, or its name on the hub; default the checkpoint's own. */
  readonly tokenizer?: string | null;
}

/** A trainer whose live weights can be measured, as those of `@periodic-eval/trainers` are. */
export interface EvaluableTrainer {
  /** Each call sees the weights as they then are. */
  readonly evaluableModel: EvaluableModel;
  /** Hash of everything in the model that changes a number, as it now is; null where it cannot be told. */
  modelFingerprint(): Awaitable<string | null>;
}

/** What is to be opened. */
export interface CheckpointSource {
  /** A folder, or `owner/name` on the hub. */
  readonly folder: string;
  /** Likewise; null for none. */
  readonly adapter: string | null;
  /** Likewise; null for the one of the checkpoint. */
  readonly tokenizer: string | null;
}

export interface OpenedModel {
  readonly model: EvaluableModel;
  /**
   * Hash of all weights, the adapter's with them. Left out or null: what was measured before cannot be told to be of the
   * same weights, and is not gone on from.
   */
  fingerprint?(): Awaitable<string | null>;
  /** Hash of the weights without the adapter, as checkpoints of our trainers name it (`frozenWeights`). */
  baseFingerprint?(): Awaitable<string | null>;
  dispose?(): void;
}

/** Loads a checkpoint: `tasks` knows no engine. */
export type OpenModel = (source: CheckpointSource) => Promise<OpenedModel>;

const known = {
  name: true,
  tasks: true,
  suite: true,
  smoke: true,
  data: true,
  results: true,
  method: true,
  modelArgs: true,
  extras: true,
  signal: true,
  onProgress: true,
  samples: true,
  now: true,
  fs: true,
} as const satisfies Record<keyof EvaluatorOptions, true>;

const ofCheckpoint = { openModel: true, adapter: true, tokenizer: true } as const satisfies Record<
  Exclude<keyof CheckpointOptions, keyof EvaluatorOptions>,
  true
>;

/** What a suite alone sets, under the names by which callers might try. */
const tuning =
  /^(limit|shots|num_?fewshot|subsample|seed|fewshot_?seed|fewshot_?pool|chat|(apply_?)?chat_?template|system(_?(prompt|instruction))?|temperature|top_?p|max_?(new_?)?tokens|gen_?kwargs)$/i;

/** What results hold as it is given. */
const toldSchema = z.object({
  extras: z.record(z.string(), z.json(), "a map of what JSON can hold"),
  modelArgs: z.json(),
});

/** @throws PeriodicEvalError `config`, also for settings that are the suite's. */
export function checkEvaluatorOptions(options: EvaluatorOptions, isCheckpoint: boolean): void {
  const where = `Evaluator.from${isCheckpoint ? "Checkpoint" : "Trainer"}`;
  const tuned = Object.keys(options ?? {}).find((key) => tuning.test(key));
  if (tuned !== undefined) {
    throw new PeriodicEvalError({
      code: "config",
      where,
      got: `a ${tuned} of its own`,
      expected: "the suite's: no method is measured by settings of its own",
      fix: "Write it into the suite file that all methods share.",
    });
  }
  checkKeys(where, options, Object.keys(isCheckpoint ? { ...known, ...ofCheckpoint } : known));
  checkName(`${where} name`, options.name);
  if (typeof options.tasks !== "object" || options.tasks === null)
    throw wrong(`${where} tasks`, options.tasks, "tasks by name");
  checkRegistry(options.tasks);
  for (const key of ["suite", "data", "results"] as const) {
    const value: unknown = options[key];
    if (key === "suite" && typeof value === "object" && value !== null) continue;
    if (value !== undefined && (typeof value !== "string" || value === ""))
      throw wrong(`${where} ${key}`, value, "a path");
  }
  const { adapter, tokenizer, openModel } = options as Partial<CheckpointOptions>;
  for (const [key, value] of Object.entries({ adapter, tokenizer, method: options.method })) {
    if (value !== undefined && value !== null && (typeof value !== "string" || value === ""))
      throw wrong(`${where} ${key}`, value, "a text, or null for none");
  }
  for (const key of ["smoke", "samples"] as const) {
    const value: unknown = options[key];
    if (value !== undefined && typeof value !== "boolean")
      throw wrong(`${where} ${key}`, value, "true or false");
  }
  const { extras = {}, modelArgs = null } = options;
  parsed(toldSchema, { extras, modelArgs }, { code: "config", where, fix: "Correct the option." });
  if (isCheckpoint && typeof openModel !== "function")
    throw wrong(`${where} openModel`, openModel, "a function that loads a checkpoint");
}

function wrong(where: string, got: unknown, expected: string): PeriodicEvalError {
  const fix = "Correct the option.";
  return new PeriodicEvalError({ code: "config", where, got: quoteValue(got), expected, fix });
}
