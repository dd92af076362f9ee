import { parseOptions } from "@periodic-eval/contracts/options";
import type { Logger } from "@periodic-eval/core";
import { plainConsoleLogger } from "@periodic-eval/core/console";
import { closeLoggers, logWarning } from "@periodic-eval/core/session";
import { declarePhases } from "@periodic-eval/store";
import { buildBlock } from "../trainer/periodic-eval.ts";
import type { TrainerOptions } from "../trainer/trainer-options.ts";
import type { TrainResult } from "../trainer/trainer.ts";
import { checkDatasets, checkOrder, checkPipeline } from "./check-pipeline.ts";
import {
  blockOf,
  pipelineOptionsSchema,
  trainerOf,
  type PipelineOptions,
  type PipelinePhase,
} from "./phases.ts";

/**
 * Trains one phase after the other on the live model. An interrupted pipeline resumes where it stopped; of finished phases it
 * only loads the final weights. After a phase that a callback stopped, the next one follows; a condition of `stopWhen` ends the
 * pipeline. So does an abort or a broken receipt, and the next run resumes that phase from its last checkpoint before. Phases may be added after those that
 * have begun, but not inserted before, removed or moved: a checkpoint records which phases came first. The run is locked until the
 * pipeline ends, and is not finished until all phases are.
 *
 * @returns One result per phase that ran.
 * @throws PeriodicEvalError before the first step, for any phase: `config` for a wrong option or configuration, for a
 *   duplicate name, or if the checkpoints have the phases in another order; `data` for a dataset that cannot be read or has no
 *   usable row; `memory` for a training that the backend cannot hold. The requests of callbacks are only checked when their
 *   phase begins.
 */
export async function runPipeline(
  given: readonly PipelinePhase[],
  options: PipelineOptions,
): Promise<readonly TrainResult[]> {
  parseOptions("runPipeline options", pipelineOptionsSchema, options);
  // Checks all phases first: a mistake in the last one must not show after hours of training.
  checkPipeline(given, options);
  const { config: shared, loggers = [plainConsoleLogger()], periodicEval, ...rest } = options;
  const names = given.map(({ phase }) => phase);
  // The same wrappers in every phase, so that a logger that does not respond is detected once.
  const wrapped = loggers.map(withoutClose);
  const trainer = (phase: PipelinePhase, at: Pick<TrainerOptions, "runStepOffset" | "after">) =>
    trainerOf(phase, { ...rest, loggers: wrapped, ...at }, shared);
  const results: TrainResult[] = [];
  let unlock = async () => {};
  try {
    const phases = await Promise.all(
      given.map(async (phase): Promise<PipelinePhase> => {
        const block = blockOf(phase, { periodicEval }, names);
        return block === null ? phase : { ...phase, periodicEval: await buildBlock(block) };
      }),
    );
    await checkOrder(phases, options);
    for (const phase of phases) {
      const [problem] = await checkDatasets(phase, options);
      if (problem !== undefined) throw problem;
    }
    unlock = await declarePhases(options.runDir, names, {
      onWait: (message) => logWarning(loggers, "store", message),
    });
    for (const phase of phases) {
      const runStepOffset = results.reduce((sum, { steps }) => sum + steps, 0);
      const after = results.map((earlier) => earlier.phase);
      const result = await trainer(phase, { runStepOffset, after }).train();
      results.push(result);
      if (rest.signal?.aborted || result.brokenReceipt !== null || result.conditionStop !== null) break;
    }
    return results;
  } finally {
    await unlock();
    await closeLoggers(loggers);
  }
}

/** Wraps a logger without its `close`: sessions close their loggers, but later phases still need them. */
function withoutClose(logger: Logger): Logger {
  return {
    name: logger.name,
    ...(logger.patienceSeconds !== undefined && { patienceSeconds: logger.patienceSeconds }),
    ...(logger.begin && { begin: (at) => logger.begin!(at) }),
    ...(logger.snapshot && { snapshot: (snapshot) => logger.snapshot!(snapshot) }),
    ...(logger.train && { train: (metrics, at) => logger.train!(metrics, at) }),
    ...(logger.end && { end: (at) => logger.end!(at) }),
    ...(logger.event && { event: (event) => logger.event!(event) }),
  };
}
