import { PeriodicEvalError, type Logger } from "@periodic-eval/core";
import { parseSFTConfig } from "../sft/sft-config.ts";
import { SFTTrainer, type SFTResult, type SFTTrainerOptions } from "../sft/sft-trainer.ts";

/** What a phase has of its own. */
export type PipelinePhase = Pick<SFTTrainerOptions, "dataset" | "config" | "callbacks" | "guards"> & {
  /** Unique in the pipeline. */
  readonly phase: string;
};

/** What all phases share; `loggers` are closed at the end of the pipeline. */
export type PipelineOptions = Pick<
  SFTTrainerOptions,
  "model" | "tokenizer" | "runDir" | "loggers" | "signal" | "resume" | "session"
> & {
  /** Defaults of every phase's configuration. */
  readonly config?: SFTTrainerOptions["config"];
};

/**
 * Trains one phase after the other on the live model. A killed pipeline, run again, goes on where it stopped: a finished
 * phase only has its final weights loaded. A phase that a callback stopped is followed by the next one; an abort ends all.
 *
 * @returns one result a phase, of those that ran
 * @throws PeriodicEvalError `config` before the first step for a wrong configuration of any phase, or a name given twice.
 */
export async function runPipeline(
  phases: readonly PipelinePhase[],
  { config: shared, loggers = [], ...options }: PipelineOptions,
): Promise<readonly SFTResult[]> {
  refuseTwice(phases.map(({ phase }) => phase));
  const configs = phases.map(({ config }) => ({ ...shared, ...config }));
  for (const config of configs) parseSFTConfig(config);
  const results: SFTResult[] = [];
  try {
    for (const [i, phase] of phases.entries()) {
      const runStepOffset = results.reduce((sum, { steps }) => sum + steps, 0);
      const trainer = new SFTTrainer({
        ...options,
        ...phase,
        config: configs[i]!,
        loggers: loggers.map(keptOpen),
        runStepOffset,
      });
      results.push(await trainer.train());
      if (options.signal?.aborted) break;
    }
    return results;
  } finally {
    for (const logger of loggers) await Promise.resolve(logger.close?.()).catch(() => undefined);
  }
}

/** A session closes its loggers; these have further phases to come. */
function keptOpen(logger: Logger): Logger {
  return {
    name: logger.name,
    ...(logger.snapshot && { snapshot: (snapshot) => logger.snapshot!(snapshot) }),
    ...(logger.train && { train: (metrics, at) => logger.train!(metrics, at) }),
    ...(logger.event && { event: (event) => logger.event!(event) }),
  };
}

function refuseTwice(names: readonly string[]): void {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice === undefined) return;
  throw new PeriodicEvalError({
    code: "config",
    where: "pipeline",
    got: `two phases named "${twice}"`,
    expected: "names that differ",
    fix: "Rename one: snapshots and checkpoints are filed by phase.",
  });
}
