import * as z from "zod";
import type { Guard, Logger, Tokenizer, TrainerCallback } from "@periodic-eval/core";
import type { TrainableLM } from "@periodic-eval/tfjs";
import type { RowsOf } from "../data/bad-row.ts";
import type { Dataset } from "../data/dataset.ts";
import type { Reading } from "../data/phase-rows.ts";
import { resumeModes, type Resume } from "../loop/learner.ts";
import type { SessionSettings } from "../loop/phase.ts";
import type { TrainingData } from "../loop/training-data.ts";
import { measureOnSchema, type MeasureOn } from "../measuring/measure-on.ts";
import type { ModelConfigs } from "./model-identity.ts";
import type { TrainingConfig } from "./training-config.ts";

/** The options that every trainer takes; `C` is its configuration. */
export interface TrainerOptions<C extends TrainingConfig = TrainingConfig> {
  /**
   * Trained in place. A resume requires the same frozen weights and, for a model that has them, as those of
   * `@periodic-eval/models` do, the same `config` and `adapterConfig`.
   */
  readonly model: TrainableLM & ModelConfigs;
  readonly tokenizer: Tokenizer;
  /**
   * Receives snapshots in `<runDir>/periodic_eval`, checkpoints in `<runDir>/checkpoints/<phase>`, and the list of rows that
   * cannot be trained on unchanged in `<runDir>/bad_rows/<phase>`.
   */
  readonly runDir: string;
  /** Default `train`. Matches `[A-Za-z0-9][\w.-]*`; unique within the run. */
  readonly phase?: string;
  readonly config?: Partial<C>;
  readonly callbacks?: readonly TrainerCallback[];
  /**
   * A `periodic_eval` block, a configuration that holds it as `periodic_eval` or `eval.periodic_eval`, or the result of
   * `buildPeriodicEval`. Its callbacks come before `callbacks`; of its session options, those in `session` take precedence. The
   * judge of a block is opened by @periodic-eval/models if it runs in this process, else by @periodic-eval/remote; its
   * `evaluations` are tasks of @periodic-eval/tasks.
   */
  readonly periodicEval?: unknown;
  /** Added to those of TensorFlow.js, which are always active. */
  readonly guards?: readonly Guard[];
  /** Default: plain lines on the console. An empty array logs nothing but warnings. */
  readonly loggers?: readonly Logger[];
  readonly signal?: AbortSignal;
  /** Default `auto`. */
  readonly resume?: Resume;
  /**
   * Earlier phases of the run that trained the model, in order. A resume requires the same phases, and the weights as they
   * left them. If omitted, nothing is compared. `runPipeline` sets it.
   */
  readonly after?: readonly string[];
  /** Optimizer steps of earlier phases of the run. Default: the largest `run_step` of their snapshots. */
  readonly runStepOffset?: number;
  readonly session?: SessionSettings;
  /** Measures the adapter on a server instead of in this process. Training is the same to the bit. */
  readonly measureOn?: MeasureOn;
}

/** For options that a more specific check follows. */
export const uncheckedField = z.unknown().optional();

/** Accepts an array of objects; their fields are checked where they are used. */
export const objectsSchema = <T extends object>(name: string) =>
  z.array(
    z.custom<T>((value) => typeof value === "object" && value !== null, "an object"),
    `an array of ${name}`,
  );

const sessionFields = {
  onFailure: uncheckedField,
  onBrokenReceipt: uncheckedField,
  patienceSeconds: uncheckedField,
  budget: uncheckedField,
  saveAtFiring: uncheckedField,
  baseline: uncheckedField,
  familywise: uncheckedField,
  stopWhen: uncheckedField,
  layout: uncheckedField,
  clock: uncheckedField,
  now: uncheckedField,
} satisfies Record<keyof SessionSettings, z.ZodType>;

/** Checks the names of all options, and the values that no later check covers. */
export const trainerFields = {
  model: uncheckedField,
  tokenizer: uncheckedField,
  runDir: uncheckedField,
  phase: uncheckedField,
  config: uncheckedField,
  callbacks: objectsSchema<TrainerCallback>("callbacks").optional(),
  periodicEval: uncheckedField,
  guards: objectsSchema<Guard>("guards").optional(),
  loggers: objectsSchema<Logger>("loggers").optional(),
  signal: z
    .custom<AbortSignal>(
      (value) => typeof (value as AbortSignal | null)?.throwIfAborted === "function",
      "an AbortSignal",
    )
    .meta({ fix: "Pass the signal of an AbortController." })
    .optional(),
  resume: z.enum(resumeModes).optional(),
  after: z.array(z.string(), "an array of phase names").optional(),
  runStepOffset: uncheckedField,
  session: z.strictObject(sessionFields).optional(),
  measureOn: measureOnSchema.optional(),
} satisfies Record<keyof TrainerOptions, z.ZodType>;

/** The parts in which training methods differ. */
export interface TrainingMethod<C extends TrainingConfig> {
  /** Name in errors: `SFT`, and `SFTTrainer` for the trainer. */
  readonly name: string;
  /** The checked configuration with its defaults. */
  readonly config: C;
  /** Names of the metrics on held-out rows, without prefix: `loss`, `perplexity`. */
  readonly heldOutMetrics: readonly string[];
  /** Whether there are separate validation rows. */
  readonly hasValidation: boolean;
  /** Sequences of a row in a forward pass: 2 for DPO. Default: 1. */
  readonly sequencesPerRow?: number;
  /** Reads and renders the rows. Reads no weights. */
  read(reading: Reading, of: RowsOf): Promise<MethodRows>;
}

/** Rows of which `MethodRows.texts` are. */
export const mostTexts = 64;

/** The rendered rows of a source. */
export interface MethodRows extends Omit<Dataset, "rows" | "hash"> {
  /** Rows that can be trained on. */
  readonly count: number;
  /** Token ids of some rows, or of their chosen answers. */
  readonly texts: readonly (readonly number[])[];
  /** Returns the tokens of each row of the batches that the rows with these numbers become; packing joins rows. */
  lengthsOf(rows: readonly number[]): readonly number[];
  /**
   * Prepares the steps. A reference of DPO runs here, which may take minutes. The model has the weights from before the phase,
   * even if the phase resumes later.
   */
  prepare(settings: TrainingSettings): Promise<TrainingData>;
}

export interface TrainingSettings {
  /** Seeds everything random in the phase. */
  readonly seed: string;
  readonly phase: string;
  readonly runDir: string;
  warn(where: string, message: string): void;
}
