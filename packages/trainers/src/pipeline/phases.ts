import type { TrainableLM } from "@periodic-eval/tfjs";
import * as z from "zod";
import { dpoMethod, DPOTrainer, type DPOTrainerOptions } from "../dpo/dpo-trainer.ts";
import { sftMethod, SFTTrainer, type SFTTrainerOptions } from "../sft/sft-trainer.ts";
import type { OutlinedLM } from "../trainer/checks.ts";
import type { BlockOption } from "../trainer/periodic-eval.ts";
import {
  trainerFields,
  uncheckedField,
  type TrainerOptions,
  type TrainingMethod,
} from "../trainer/trainer-options.ts";
import type { TrainingConfig } from "../trainer/training-config.ts";

interface NamedPhase {
  /** Unique in the pipeline. */
  readonly phase: string;
}

/** The options of one phase of supervised fine-tuning. */
export type SFTPhase = NamedPhase & {
  readonly method?: "sft";
} & Pick<
    SFTTrainerOptions,
    "dataset" | "validation" | "config" | "callbacks" | "guards" | "session" | "periodicEval"
  >;

/** The options of one phase of direct preference optimization. */
export type DPOPhase = NamedPhase & {
  readonly method: "dpo";
} & Pick<
    DPOTrainerOptions,
    "dataset" | "validation" | "reference" | "config" | "callbacks" | "guards" | "session" | "periodicEval"
  >;

export type PipelinePhase = SFTPhase | DPOPhase;

/** The options that all phases share. `loggers` are closed at the end of the pipeline. */
export type PipelineOptions = Pick<
  TrainerOptions,
  "model" | "tokenizer" | "runDir" | "loggers" | "signal" | "resume" | "session" | "measureOn"
> & {
  /** Defaults for every phase's configuration. */
  readonly config?: Partial<TrainingConfig>;
  /** A `periodic_eval` block for all phases, with overrides in its `phases`. A phase's own `periodicEval` replaces it. */
  readonly periodicEval?: unknown;
};

/** Options of a pipeline whose model need not be loaded. */
export type CheckedPipelineOptions = Omit<PipelineOptions, "model"> & { readonly model: OutlinedLM };

const { callbacks, periodicEval, guards, session, loggers, signal, resume, measureOn } = trainerFields;

const sftPhaseFields = {
  method: z.literal("sft").optional(),
  phase: uncheckedField,
  dataset: uncheckedField,
  validation: uncheckedField,
  config: uncheckedField,
  callbacks,
  periodicEval,
  guards,
  session,
} satisfies Record<keyof SFTPhase, z.ZodType>;

const dpoPhaseFields = {
  ...sftPhaseFields,
  method: z.literal("dpo"),
  reference: uncheckedField,
} satisfies Record<keyof DPOPhase, z.ZodType>;

const optionFields = {
  model: uncheckedField,
  tokenizer: uncheckedField,
  runDir: uncheckedField,
  loggers,
  signal,
  resume,
  session,
  measureOn,
  config: uncheckedField,
  periodicEval,
} satisfies Record<keyof PipelineOptions, z.ZodType>;

export const phaseSchemas = { sft: z.strictObject(sftPhaseFields), dpo: z.strictObject(dpoPhaseFields) };
export const pipelineOptionsSchema = z.strictObject(optionFields);

/**
 * Returns where the `periodic_eval` block of a phase stands, in its own options or in the pipeline's. Null if there is none.
 *
 * @param phases All phases of the pipeline, by name.
 */
export function blockOf(
  { phase, periodicEval: ofPhase }: PipelinePhase,
  { periodicEval: shared }: Pick<PipelineOptions, "periodicEval">,
  phases: readonly string[],
): BlockOption | null {
  const block = ofPhase ?? shared;
  if (block === undefined) return null;
  return {
    where: ofPhase === undefined ? "runPipeline options" : `pipeline phase "${phase}"`,
    block,
    phase,
    phases,
  };
}

/**
 * Creates the trainer of a phase. Its constructor reads no weights, so that an `OutlinedLM` suffices for a check.
 *
 * @param shared Defaults for the phase's configuration.
 * @throws PeriodicEvalError as the trainer's constructor.
 */
export function trainerOf(
  phase: PipelinePhase,
  { model, ...options }: Omit<TrainerOptions, "model"> & { readonly model: OutlinedLM },
  shared: PipelineOptions["config"],
): SFTTrainer | DPOTrainer {
  const common = {
    ...options,
    model: model as TrainableLM,
    session: { ...options.session, ...phase.session },
  };
  const config = { ...shared, ...phase.config };
  if (phase.method === "dpo") {
    const { method: _dpo, session: _session, ...rest } = phase;
    return new DPOTrainer({ ...common, ...rest, config });
  }
  const { method: _sft, session: _session, ...rest } = phase;
  return new SFTTrainer({ ...common, ...rest, config });
}

/**
 * Returns the training method of a phase, whose rows it reads. Needs no weights.
 *
 * @param shared Defaults for the phase's configuration.
 * @throws PeriodicEvalError `config` for a wrong configuration.
 */
export function methodOf(
  phase: PipelinePhase,
  { model, tokenizer }: Pick<CheckedPipelineOptions, "model" | "tokenizer">,
  shared: PipelineOptions["config"],
): TrainingMethod<TrainingConfig> {
  const options = { model: model as TrainableLM, tokenizer };
  const config = { ...shared, ...phase.config };
  return phase.method === "dpo"
    ? dpoMethod({ ...options, ...phase, config })
    : sftMethod({ ...options, ...phase, config });
}
