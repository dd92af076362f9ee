import { aboutOption } from "@periodic-eval/contracts/options";
import * as tf from "@tensorflow/tfjs-core";
import type { RowsOf } from "../data/bad-rows-file.ts";
import { checkSource } from "../data/read-rows.ts";
import { filesOf } from "../data/row-files.ts";
import { parseDPOConfig } from "../dpo/dpo-config.ts";
import { parseSFTConfig } from "../sft/sft-config.ts";
import { planPhase } from "../trainer/plan-phase.ts";
import { checkTrainingMemory } from "../trainer/training-memory.ts";
import type { TrainingConfig } from "../trainer/training-config.ts";
import { methodOf, type CheckedPipelineOptions, type PipelinePhase } from "./phases.ts";

type CheckOptions = Pick<CheckedPipelineOptions, "tokenizer" | "config" | "runDir" | "model">;

/**
 * Reads the rows of a phase and its validation rows exactly as its trainer will, so that a mistake in a late phase does not
 * show after hours of training. Keeps the rows of files, about eight bytes per token, for the trainer with the same
 * tokenizer, which then need not read them again. Reads no weights. Lists bad rows below `runDir` as the trainer does, even
 * if the training cannot start.
 *
 * If a backend has been started, a training that needs more memory than it has is a problem too.
 *
 * @returns The problems of both sources: the `data` error that the trainer would throw, or the `config` error for a `loss`
 *   that does not fit a row's form, or for a schedule that is longer than the steps of these rows, or the `memory` error.
 * @throws PeriodicEvalError `config` for a configuration that `checkPipeline` refuses.
 */
export async function checkDatasets(
  given: PipelinePhase,
  { config, runDir, model, tokenizer }: CheckOptions,
): Promise<readonly unknown[]> {
  const { phase } = given;
  const method = methodOf(given, { model, tokenizer }, config);
  const check = async (of: RowsOf): Promise<void> => {
    const rows = await method.read({ phase, runDir, isAhead: true }, of);
    if (of === "validation") return;
    const { size } = planPhase(method, rows, { model, phase });
    if (tf.getBackend()) checkTrainingMemory({ where: `phase "${phase}"`, model, size });
  };
  return problemsOf(given, check);
}

/**
 * Checks that the rows of a phase and its validation rows can be had: that files exist, and that the cache holds datasets on the
 * hub, after downloading them. Needs no model and reads no rows.
 *
 * @returns The problems of both sources, each with the path `dataset` or `validation`.
 */
export const checkSources = (given: Pick<PipelinePhase, RowsOf>): Promise<readonly unknown[]> =>
  problemsOf(given, async (of) => {
    const source = given[of];
    checkSource("phase options", of, source);
    if (typeof source !== "string") return;
    await filesOf(source, of).catch((error: unknown) => {
      throw aboutOption(error, { where: of, path: [of] });
    });
  });

/** Runs a check of each given source. */
async function problemsOf(
  given: Pick<PipelinePhase, RowsOf>,
  check: (of: RowsOf) => Promise<void>,
): Promise<readonly unknown[]> {
  const problems: unknown[] = [];
  for (const of of ["dataset", "validation"] as const)
    if (given[of] !== undefined) await check(of).catch((error: unknown) => problems.push(error));
  return problems;
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
export async function countSteps(given: PipelinePhase, { config, open }: CountOptions): Promise<number> {
  const parse = given.method === "dpo" ? parseDPOConfig : parseSFTConfig;
  const { maxSteps } = parse({ ...config, ...given.config });
  if (maxSteps !== null) return maxSteps;
  const { phase } = given;
  const opened = await open();
  const method = methodOf(given, opened, config);
  const rows = await method.read({ phase, runDir: null, isAhead: false }, "dataset");
  return planPhase(method, rows, { model: opened.model, phase }).maxSteps;
}
