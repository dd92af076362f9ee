import * as tf from "@tensorflow/tfjs-core";
import { windowLength } from "@periodic-eval/core/tfjs";
import type { RowsOf } from "../data/bad-rows-file.ts";
import { stepsPerEpochOf } from "../data/batching.ts";
import { loadDataset } from "../data/dataset.ts";
import { holdOut } from "../data/hold-out.ts";
import { packRows } from "../data/packing.ts";
import { readDataset, readPreferences } from "../data/phase-rows.ts";
import { loadPreferences } from "../data/preference-dataset.ts";
import { readAhead } from "../data/read-ahead.ts";
import type { TrainingRow } from "../data/render-row.ts";
import { parseDPOConfig } from "../dpo/dpo-config.ts";
import { parseSFTConfig, type SFTConfig } from "../sft/sft-config.ts";
import type { OutlinedLM } from "../trainer/check-parts.ts";
import { checkTrainingMemory, trainingSizeOf, type TrainingSize } from "../trainer/training-memory.ts";
import { phaseSteps, scheduleOf } from "../trainer/schedule.ts";
import type { TrainingConfig } from "../trainer/training-config.ts";
import type { CheckedPipelineOptions, PipelinePhase } from "./phases.ts";

type CheckOptions = Pick<CheckedPipelineOptions, "tokenizer" | "config" | "runDir" | "model">;

/**
 * Reads the rows of a phase and its validation rows exactly as its trainer will, so that a mistake in a late phase does not
 * show after hours of training. Keeps the rows of files, about eight bytes per token, for the trainer with the same
 * tokenizer, which then need not read them again. Reads no weights. Lists bad rows below `runDir` as the trainer does, even
 * if the training cannot start.
 *
 * If an engine has been started, a training that needs more memory than it has is a problem too.
 *
 * @returns The problems of both sources: the `data` error that the trainer would throw, or the `config` error for a `loss`
 *   that does not fit a row's form, or for a schedule that is longer than the steps of these rows, or the `memory` error.
 * @throws PeriodicEvalError `config` for a configuration that `checkPipeline` refuses.
 */
export async function checkDatasets(
  phase: PipelinePhase,
  options: CheckOptions,
): Promise<readonly unknown[]> {
  const problems: unknown[] = [];
  for (const read of readings(phase, options)) {
    try {
      await read();
    } catch (error) {
      problems.push(error);
    }
  }
  return problems;
}

function readings(
  phase: PipelinePhase,
  { tokenizer, config: shared, model, runDir }: CheckOptions,
): readonly (() => Promise<void>)[] {
  const given = { ...shared, ...phase.config };
  const { vocabSize } = model;
  const at = { phase: phase.phase, runDir, tokenizer };
  if (phase.method === "dpo") {
    const config = parseDPOConfig(given);
    const { onBadRow } = config;
    const maxLength = config.maxLength ?? windowLength(model);
    const isPrecomputed = phase.reference === "precomputed";
    const options = { maxLength, onBadRow, isPrecomputed, vocabSize };
    return sourcesOf(phase).map(([of, source]) => async () => {
      const { rows } = await readPreferences(readAhead, { ...at, source, of }, options);
      if (of === "validation") return;
      const trained = trainedOn(rows, config, phase.phase);
      checkLength("DPO config", config, trained.length);
      const lengths = trained.map(({ chosen, rejected }) => Math.max(chosen.ids.length, rejected.ids.length));
      checkMemory(phase, model, trainingSizeOf(lengths, config, { sequencesPerRow: 2, model }));
    });
  }
  const config = parseSFTConfig(given);
  const { onBadRow, loss } = config;
  const maxLength = config.maxLength ?? windowLength(model);
  return sourcesOf(phase).map(([of, source]) => async () => {
    const options = { maxLength, onBadRow, loss, vocabSize };
    const { rows } = await readDataset(readAhead, { ...at, source, of }, options);
    if (of === "validation") return;
    const batched = batchedRows(rows, config, phase.phase, maxLength);
    checkLength("SFT config", config, batched.length);
    const lengths = batched.map(({ ids }) => ids.length);
    checkMemory(phase, model, trainingSizeOf(lengths, config, { model }));
  });
}

/** Refuses a training that the engine cannot hold, before its weights are loaded. Needs an engine. */
function checkMemory({ phase }: PipelinePhase, model: OutlinedLM, size: TrainingSize): void {
  if (tf.getBackend()) checkTrainingMemory({ where: `phase "${phase}"`, model, size });
}

/** A phase's options, and how to open the model without weights where its rows must be counted. */
export interface CountOptions {
  /** Defaults for the phase's configuration. */
  readonly config?: Partial<TrainingConfig>;
  readonly open: () => Promise<Pick<CheckOptions, "tokenizer" | "model">>;
}

/**
 * Returns the optimizer steps of a phase as its trainer will count them: `maxSteps`, or `epochs` times the batches of the rows
 * that can be trained on. Reads the rows only for `epochs`. Reads no weights and writes nothing.
 *
 * @throws PeriodicEvalError `config` for a wrong configuration; `data` for a dataset that cannot be read.
 */
export async function countSteps(
  phase: PipelinePhase,
  { config: shared, open }: CountOptions,
): Promise<number> {
  const given = { ...shared, ...phase.config };
  if (phase.method === "dpo") {
    const config = parseDPOConfig(given);
    if (config.maxSteps !== null) return config.maxSteps;
    const { tokenizer, model } = await open();
    const isPrecomputed = phase.reference === "precomputed";
    const options = { onBadRow: config.onBadRow, isPrecomputed, vocabSize: model.vocabSize };
    const maxLength = config.maxLength ?? windowLength(model);
    const { rows } = await loadPreferences(phase.dataset, tokenizer, { ...options, maxLength });
    return stepsOf(config, trainedRows(rows, config, phase.phase));
  }
  const config = parseSFTConfig(given);
  if (config.maxSteps !== null) return config.maxSteps;
  const { tokenizer, model } = await open();
  const { onBadRow, loss } = config;
  const maxLength = config.maxLength ?? windowLength(model);
  const options = { maxLength, onBadRow, loss, vocabSize: model.vocabSize };
  const { rows } = await loadDataset(phase.dataset, tokenizer, options);
  return stepsOf(config, batchedRows(rows, config, phase.phase, maxLength).length);
}

const trainedRows = (rows: readonly unknown[], config: TrainingConfig, phase: string): number =>
  trainedOn(rows, config, phase).length;

/** Returns the rows of batches: those that are trained on, or what packing makes of them. */
function batchedRows(
  rows: readonly TrainingRow[],
  config: SFTConfig,
  phase: string,
  maxLength: number,
): readonly Pick<TrainingRow, "ids">[] {
  const trained = trainedOn(rows, config, phase);
  return config.packing ? packRows(trained, maxLength) : trained;
}

const stepsOf = (config: TrainingConfig, rows: number): number =>
  phaseSteps(config, stepsPerEpochOf(rows, config));

/** Returns the rows that are not held out for validation. */
function trainedOn<R>(
  rows: readonly R[],
  { validationShare, seed }: TrainingConfig,
  phase: string,
): readonly R[] {
  if (validationShare === null) return rows;
  return holdOut(rows.length, validationShare, { seed: String(seed), phase }).training.map((at) => rows[at]!);
}

/** Checks the schedule against the steps of the phase, which `epochs` only determine once the rows are counted. */
function checkLength(name: string, config: TrainingConfig, rows: number): void {
  scheduleOf(name, config, stepsOf(config, rows));
}

const sourcesOf = <S>({
  dataset,
  validation,
}: {
  readonly dataset: S;
  readonly validation?: S;
}): readonly (readonly [RowsOf, S])[] => [
  ["dataset", dataset],
  ...(validation === undefined ? [] : [["validation", validation] as const]),
];
