import { windowLength } from "@periodic-eval/core/tfjs";
import type { RowsOf } from "../data/bad-rows-file.ts";
import { stepsPerEpochOf } from "../data/batching.ts";
import { holdOut } from "../data/hold-out.ts";
import { packRows } from "../data/packing.ts";
import { readDataset, readPreferences } from "../data/phase-rows.ts";
import { readAhead } from "../data/read-ahead.ts";
import { parseDPOConfig } from "../dpo/dpo-config.ts";
import { parseSFTConfig } from "../sft/sft-config.ts";
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
 * @returns The problems of both sources: the `data` error that the trainer would throw, or the `config` error for a `loss`
 *   that does not fit a row's form, or for a schedule that is longer than the steps of these rows.
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
      if (of === "dataset") checkLength("DPO config", config, trainedOn(rows, config, phase.phase).length);
    });
  }
  const config = parseSFTConfig(given);
  const { onBadRow, loss, packing } = config;
  const maxLength = config.maxLength ?? windowLength(model);
  return sourcesOf(phase).map(([of, source]) => async () => {
    const options = { maxLength, onBadRow, loss, vocabSize };
    const { rows } = await readDataset(readAhead, { ...at, source, of }, options);
    if (of === "validation") return;
    const trained = trainedOn(rows, config, phase.phase);
    checkLength("SFT config", config, packing ? packRows(trained, maxLength).length : trained.length);
  });
}

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
  scheduleOf(name, config, phaseSteps(config, stepsPerEpochOf(rows, config)));
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
