import { PeriodicEvalError, type Logger } from "@periodic-eval/core";
import { closeLoggers } from "@periodic-eval/core/session";
import { checkKeys, checkWord } from "@periodic-eval/core/internal";
import type { TrainableLM } from "@periodic-eval/core/tfjs";
import { DPOTrainer, type DPOTrainerOptions } from "../dpo/dpo-trainer.ts";
import { SFTTrainer, type SFTTrainerOptions } from "../sft/sft-trainer.ts";
import { checkObjects } from "../trainer/check-parts.ts";

import type { OutlinedLM } from "../trainer/outlined-lm.ts";
import type { TrainerOptions, TrainResult } from "../trainer/trainer.ts";
import type { TrainingConfig } from "../trainer/training-config.ts";
import { resultOfTorn } from "./torn-phase.ts";
import { checkOrder } from "./check-order.ts";

interface PhaseNamed {
  /** Unique in the pipeline. */
  readonly phase: string;
}

/** What a phase of supervised fine-tuning has of its own. */
export type SFTPhase = PhaseNamed & {
  readonly method?: "sft";
} & Pick<SFTTrainerOptions, "dataset" | "validation" | "config" | "callbacks" | "guards" | "session">;

/** What a phase of direct preference optimization has of its own. */
export type DPOPhase = PhaseNamed & {
  readonly method: "dpo";
} & Pick<
    DPOTrainerOptions,
    "dataset" | "validation" | "reference" | "config" | "callbacks" | "guards" | "session"
  >;

export type PipelinePhase = SFTPhase | DPOPhase;

/** What all phases share; `loggers` are closed at the end of the pipeline. */
export type PipelineOptions = Pick<
  TrainerOptions,
  "model" | "tokenizer" | "runDir" | "loggers" | "signal" | "resume" | "session"
> & {
  /** Defaults of every phase's configuration. */
  readonly config?: Partial<TrainingConfig>;
};

const knownOfSFT = {
  method: true,
  phase: true,
  dataset: true,
  validation: true,
  config: true,
  callbacks: true,
  guards: true,
  session: true,
} as const satisfies Record<keyof SFTPhase, true>;
const knownOfDPO = { ...knownOfSFT, reference: true } as const satisfies Record<keyof DPOPhase, true>;

const known = {
  model: true,
  tokenizer: true,
  runDir: true,
  loggers: true,
  signal: true,
  resume: true,
  session: true,
  config: true,
} as const satisfies Record<keyof PipelineOptions, true>;

/**
 * Trains one phase after the other on the live model. A killed pipeline, run again, goes on where it stopped: a finished
 * phase only has its final weights loaded. A phase that a callback stopped is followed by the next one; an abort ends all, and
 * so does a broken receipt: run again, the phase goes on from its last checkpoint before that. Phases may be added behind
 * those that have begun, not put in before, left out or moved: a checkpoint knows what its phase began from.
 *
 * @returns one result a phase, of those that ran
 * @throws PeriodicEvalError before the first step, for any phase: `config` for a wrong option or configuration, or a name
 *   given twice, or phases that came in another order in the checkpoints; `data` for a dataset's file that is not there. What a phase reads and measures is looked at where it
 *   begins.
 */
export async function runPipeline(
  phases: readonly PipelinePhase[],
  options: PipelineOptions,
): Promise<readonly TrainResult[]> {
  checkKeys("runPipeline", options, Object.keys(known));
  // The last phase's mistake shall not show after hours of the first.
  checkPipeline(phases, options);
  const { config: shared, loggers = [], ...rest } = options;
  // The same ones in every phase: which of them does not answer is found out once.
  const kept = loggers.map(keptOpen);
  const trainer = (phase: PipelinePhase, at: Pick<TrainerOptions, "runStepOffset" | "after">) =>
    trainerOf(phase, { ...rest, loggers: kept, ...at }, shared);
  const results: TrainResult[] = [];
  try {
    await checkOrder(phases, options);
    let isTorn = false;
    for (const [at, phase] of phases.entries()) {
      const runStepOffset = results.reduce((sum, { steps }) => sum + steps, 0);
      // What a torn phase left is not in the model, and cannot be compared; the next has all of its own.
      const after = isTorn ? {} : { after: results.map((earlier) => earlier.phase) };
      const torn = await resultOfTorn(phase, phases[at + 1], { ...rest, loggers: kept });
      isTorn = torn !== null;
      const result = torn ?? (await trainer(phase, { runStepOffset, ...after }).train());
      results.push(result);
      if (rest.signal?.aborted || result.brokenReceipt !== null) break;
    }
    return results;
  } finally {
    await closeLoggers(loggers);
  }
}

/**
 * Everything that `runPipeline` checks before the first step. No weight is asked for, so that what is wrong can be told before
 * they are loaded.
 *
 * @throws PeriodicEvalError as `runPipeline`.
 */
export function checkPipeline(
  phases: readonly PipelinePhase[],
  { config, model, ...rest }: Omit<PipelineOptions, "model"> & { readonly model: OutlinedLM },
): void {
  checkObjects("pipeline phases", phases);
  if (phases.length === 0) throw noPhase();
  for (const phase of phases) checkPhase(phase);
  refuseTwice(phases.map(({ phase }) => phase));
  // Made, a trainer looks at no more of a model than its checks do, which take an OutlinedLM.
  for (const phase of phases) trainerOf(phase, { ...rest, model: model as TrainableLM }, config);
}

const noPhase = (): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "config",
    where: "pipeline phases",
    got: "an empty list",
    expected: "a phase or more",
    fix: "Give { phase, dataset } for each training.",
  });

function checkPhase(phase: PipelinePhase): void {
  const where = `pipeline phase "${phase.phase}"`;
  checkWord(`${where} method`, phase.method ?? "sft", ["sft", "dpo"]);
  checkKeys(where, phase, Object.keys(phase.method === "dpo" ? knownOfDPO : knownOfSFT));
}

function trainerOf(
  given: PipelinePhase,
  options: TrainerOptions,
  shared: PipelineOptions["config"],
): SFTTrainer | DPOTrainer {
  const config = { ...shared, ...given.config };
  const session = { ...options.session, ...given.session };
  if (given.method === "dpo") {
    const { method: _dpo, ...phase } = given;
    return new DPOTrainer({ ...options, ...phase, config, session });
  }
  const { method: _sft, ...phase } = given;
  return new SFTTrainer({ ...options, ...phase, config, session });
}

/** A session closes its loggers; these have further phases to come. */
function keptOpen(logger: Logger): Logger {
  return {
    name: logger.name,
    ...(logger.patienceSeconds !== undefined && { patienceSeconds: logger.patienceSeconds }),
    ...(logger.begin && { begin: (at) => logger.begin!(at) }),
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
