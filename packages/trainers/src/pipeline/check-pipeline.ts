import * as z from "zod";
import * as tf from "@tensorflow/tfjs-core";
import { configError, isRecord, parseOptions, atOption } from "@periodic-eval/contracts/options";
import { join } from "@periodic-eval/store/platform";
import { checkpointsOf } from "../checkpoint/checkpoints.ts";
import { checkEarlierPhases } from "../checkpoint/saved-tensors.ts";
import { describeValue, type RowsOf } from "../data/bad-row.ts";
import { checkSource, filesOf } from "../data/read-rows.ts";
import { parseDPOConfig } from "../dpo/dpo-config.ts";
import { parseSFTConfig } from "../sft/sft-config.ts";
import { checkBlock } from "../trainer/periodic-eval.ts";
import { planPhase } from "../trainer/plan-phase.ts";
import type { TrainerOptions } from "../trainer/trainer-options.ts";
import type { TrainingConfig } from "../trainer/training-config.ts";
import { checkTrainingMemory } from "../trainer/training-memory.ts";
import {
  blockOf,
  phaseSchemas,
  trainerOf,
  type CheckedPipelineOptions,
  type PipelinePhase,
  methodOf,
} from "./phases.ts";

const where = "pipeline phases";

/**
 * Runs all checks of `runPipeline` that come before the first step. Reads no weights, so that problems are reported before
 * they are loaded.
 *
 * @throws PeriodicEvalError as `runPipeline`.
 */
export function checkPipeline(
  phases: readonly PipelinePhase[],
  { config, periodicEval, ...options }: CheckedPipelineOptions,
): void {
  parseOptions(where, z.array(z.unknown(), "an array of phases"), phases);
  if (phases.length === 0)
    throw configError({
      where,
      got: "an empty array",
      expected: "one phase or more",
      fix: "Add { phase, dataset } for each training.",
    });
  for (const [at, phase] of phases.entries()) checkPhase(phase, at);
  const names = phases.map(({ phase }) => phase);
  checkNames(names);
  for (const phase of phases) {
    const block = blockOf(phase, { periodicEval }, names);
    if (block !== null) checkBlock(block, { ...options.session, ...phase.session });
    trainerOf(block === null ? phase : { ...phase, periodicEval: block.block }, options, config);
  }
}

function checkPhase(phase: PipelinePhase, at: number): void {
  if (!isRecord(phase))
    throw configError({
      where,
      path: [at],
      got: describeValue(phase),
      expected: "an object",
      fix: "Remove it, or pass { phase, dataset }.",
    });
  const { method = "sft" } = phase;
  const name = `pipeline phase "${phase.phase}"`;
  parseOptions(name, z.looseObject({ method: z.enum(["sft", "dpo"]).optional() }), phase);
  parseOptions(name, phaseSchemas[method], phase);
}

function checkNames(names: readonly string[]): void {
  const at = names.findIndex((name, i) => names.indexOf(name) !== i);
  if (at === -1) return;
  throw configError({
    where,
    path: [at, "phase"],
    got: `a second phase named "${names[at]}"`,
    expected: "unique names",
    fix: "Rename one of them: snapshots and checkpoints are stored by phase.",
  });
}

/**
 * Compares the order of the phases with the run's checkpoints. If a phase was inserted, removed or moved before one that has
 * begun, a resume would undo the training before it. Changes nothing.
 *
 * @throws PeriodicEvalError `config` that names the phase.
 */
export async function checkOrder(
  phases: readonly { readonly phase: string }[],
  { runDir, resume = "auto" }: Pick<TrainerOptions, "runDir" | "resume">,
): Promise<void> {
  if (resume === "never") return;
  for (const [at, { phase }] of phases.entries()) {
    const start = await checkpointsOf({ runDir, phase, keep: 1, warn: () => undefined }).startOfNewest();
    const before = phases.slice(0, at).map((earlier) => earlier.phase);
    checkEarlierPhases(join(runDir, "checkpoints", phase), phase, start, before);
  }
}

type CheckedParts = Pick<CheckedPipelineOptions, "model" | "tokenizer">;
type PhaseOptions = Pick<CheckedPipelineOptions, "config" | "runDir">;

/**
 * Returns all errors of a phase that its trainer would throw before the first step; of its rows the first of the dataset and the
 * first of the validation rows. Reads no weights. A phase whose files cannot be had, also after a download, is not checked further.
 *
 * @param parts Null if they cannot be had; then only the files are checked.
 */
export async function phaseErrors(
  given: PipelinePhase,
  parts: CheckedParts | null,
  options: PhaseOptions,
): Promise<readonly unknown[]> {
  const missing = await problemsOf(given, async (of) => {
    const source = given[of];
    checkSource("phase options", of, source);
    if (typeof source === "string") await atOption({ where: of, path: [of] }, () => filesOf(source, of));
  });
  if (missing.length > 0 || parts === null) return missing;
  const { model, tokenizer } = parts;
  try {
    checkPipeline([given], { model, tokenizer, ...options });
    return await checkDatasets(given, { model, tokenizer, ...options });
  } catch (error) {
    return [error];
  }
}

/**
 * Reads the rows of a phase and its validation rows exactly as its trainer will, so that a mistake in a late phase does not
 * show after hours of training. Keeps the rows of files, about eight bytes per token, for the trainer with the same
 * tokenizer, which then need not read them again. Lists bad rows below `runDir` as the trainer does, even if the training cannot
 * start. If a backend has been started, a training that needs more memory than it has is a problem too.
 *
 * @returns The problems of both sources: the `data` error that the trainer would throw, or the `config` error for a `loss`
 *   that does not fit a row's form, or for a schedule that is longer than the steps of these rows, or the `memory` error.
 */
export async function checkDatasets(
  phase: PipelinePhase,
  { config, runDir, ...parts }: CheckedParts & PhaseOptions,
): Promise<readonly unknown[]> {
  const { phase: name } = phase;
  const { model } = parts;
  const method = methodOf(phase, parts, config);
  return problemsOf(phase, async (of) => {
    const rows = await method.read({ phase: name, runDir, isAhead: true }, of);
    if (of === "validation") return;
    const { size } = planPhase(method, rows, { model, phase: name });
    if (tf.getBackend()) checkTrainingMemory({ where: `phase "${name}"`, model, size });
  });
}

/** Runs a check of each given source. */
async function problemsOf(
  sources: Pick<PipelinePhase, RowsOf>,
  check: (of: RowsOf) => Promise<void>,
): Promise<readonly unknown[]> {
  const problems: unknown[] = [];
  for (const of of ["dataset", "validation"] as const)
    if (sources[of] !== undefined) await check(of).catch((error: unknown) => problems.push(error));
  return problems;
}

/** A phase's options, and how to open the model without weights where its rows must be counted. */
export interface CountOptions {
  /** Defaults for the phase's configuration. */
  readonly config?: Partial<TrainingConfig>;
  readonly open: () => Promise<CheckedParts>;
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
