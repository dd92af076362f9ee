import { join } from "@periodic-eval/store/platform";
import { configError, isRecord, parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { checkpointsOf } from "../checkpoint/checkpoints.ts";
import { checkEarlierPhases } from "../checkpoint/phase-start.ts";
import { describeValue } from "../data/describe-value.ts";
import { checkBlock } from "../trainer/periodic-eval.ts";
import type { TrainerOptions } from "../trainer/trainer-options.ts";
import {
  blockOf,
  phaseSchemas,
  trainerOf,
  type CheckedPipelineOptions,
  type PipelinePhase,
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
    trainerOf(phase, options, config);
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
    const before = phases.slice(0, at).map((one) => one.phase);
    checkEarlierPhases(join(runDir, "checkpoints", phase), phase, start, before);
  }
}
