import { windowLength } from "@periodic-eval/core/tfjs";
import type { RowsOf } from "../data/bad-rows-file.ts";
import { stepsPerEpochOf } from "../data/data-plan.ts";
import { holdOut } from "../data/hold-out.ts";
import { packRows } from "../data/packing.ts";
import { readDataset, readPreferences } from "../data/phase-rows.ts";
import { readAhead } from "../data/read-ahead.ts";
import { parseDPOConfig } from "../dpo/dpo-config.ts";
import { parseSFTConfig } from "../sft/sft-config.ts";
import type { OutlinedLM } from "../trainer/outlined-lm.ts";
import { scheduleOf } from "../trainer/schedule.ts";
import { phaseSteps, type TrainingConfig } from "../trainer/training-config.ts";
import type { PipelineOptions, PipelinePhase } from "./run-pipeline.ts";

type CheckOptions = Pick<PipelineOptions, "tokenizer" | "config" | "runDir"> & { readonly model: OutlinedLM };

/**
 * Reads the rows of a phase, those to validate on too, as its trainer will: a late phase's mistake shall not show after hours
 * of the first. What is read of a file, some eight bytes a token, is kept for the trainer with the same tokenizer, which then
 * need not read it again. No weight is asked for. Bad rows are listed
 * below `runDir`, as the trainer lists them: also those of a training that is then refused.
 *
 * @returns what is wrong: of either source the `data` error that its trainer would throw, or the `config` error for a `loss`
 *   that is none for a row's form, or for a schedule that does not fit into the steps that these rows make
 * @throws PeriodicEvalError `config` for a configuration that `checkPipeline` refuses
 */
export async function checkDatasets(
  phase: PipelinePhase,
  options: CheckOptions,
): Promise<readonly unknown[]> {
  const wrong: unknown[] = [];
  for (const read of readings(phase, options)) {
    try {
      await read();
    } catch (error) {
      wrong.push(error);
    }
  }
  return wrong;
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

/** Rows that are not held out. */
function trainedOn<R>(
  rows: readonly R[],
  { validationShare, seed }: TrainingConfig,
  phase: string,
): readonly R[] {
  if (validationShare === null) return rows;
  return holdOut(rows.length, validationShare, { seed: String(seed), phase }).training.map((at) => rows[at]!);
}

/** How many steps `epochs` are shows once the rows are counted. */
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
