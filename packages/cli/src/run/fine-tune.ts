import { PeriodicEvalError, type Logger, type Tokenizer } from "@periodic-eval/core";
import { consoleLogger } from "@periodic-eval/loggers/console";
import { useBackend, type CheckpointLM } from "@periodic-eval/models";
import {
  runPipeline,
  type PipelineOptions,
  type PipelinePhase,
  type TrainResult,
} from "@periodic-eval/trainers";
import { onInterrupt } from "../terminal/interrupt.ts";
import { openModel } from "../config/open-model.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface FineTuneOptions extends Pick<PipelineOptions, "config" | "resume" | "loggers"> {
  /** A folder as Hugging Face saves a model, or one of its hub. */
  readonly model: string;
  /** Default the model's. */
  readonly tokenizer?: Tokenizer;
  /** Puts an adapter on the model, to be trained in the place of its weights. */
  readonly adapt?: (model: CheckpointLM) => Promise<CheckpointLM>;
  /** Of shuffling, dropout and measuring. */
  readonly seed: number;
  readonly runDir: string;
  readonly backend?: string;
  readonly phases: readonly PipelinePhase[];
  /** Called where a phase begins, once its trainer has found nothing to refuse. What it throws ends training there. */
  readonly onBegin?: NonNullable<Logger["begin"]>;
  /** What goes on with the run, for errors; default the same command with its `--run-dir`. */
  readonly again?: string;
  /** Ceiling of what measuring adds to training; null for none, 20 where it is left out. */
  readonly overheadPercent?: number | null;
}

/** Trains one phase after the other on the same weights, measured live. Run again, it resumes. */
export async function fineTune(
  options: FineTuneOptions,
  terminal: Terminal,
): Promise<readonly TrainResult[]> {
  const { backend, model: source, runDir, phases, seed, overheadPercent, tokenizer: words, resume } = options;
  const session = overheadPercent === undefined ? {} : { budget: { overheadPercent } };
  const { name: engine, unusable } = await useBackend(backend === undefined ? {} : { backend });
  for (const { name, reason } of unusable) terminal.err(`${name} is installed and did not start: ${reason}`);
  const { model, tokenizer } = await openModel(source, terminal, words);
  let adapted: CheckpointLM | null = null;
  const { signal: interrupt, stopListening } = onInterrupt();
  const failure = new AbortController();
  const signal = AbortSignal.any([interrupt, failure.signal]);
  // What a logger throws is a warning; an abort ends training.
  const beginning: Logger = {
    name: "begin",
    async begin(at) {
      try {
        await options.onBegin?.(at);
      } catch (error) {
        failure.abort(error);
      }
    },
  };
  terminal.out(`${source} on ${engine}; snapshots go to ${runDir}/periodic_eval`);
  try {
    adapted = (await options.adapt?.(model)) ?? null;
    const results = await runPipeline(phases, {
      model: adapted ?? model,
      tokenizer,
      runDir,
      signal,
      config: { seed, ...options.config },
      session,
      loggers: [beginning, consoleLogger(terminal), ...(options.loggers ?? [])],
      ...(resume && { resume }),
    });
    failure.signal.throwIfAborted();
    if (interrupt.aborted) throw interrupted(results.at(-1), runDir, options.again ?? sameCommand(runDir));
    return results;
  } finally {
    stopListening();
    adapted?.dispose();
    model.dispose();
  }
}

const sameCommand = (runDir: string): string => `the same command with --run-dir ${runDir}`;

/** @throws PeriodicEvalError `receipt` where measuring disturbed the last phase, which ended training there. */
export function checkUndisturbed(
  results: readonly TrainResult[],
  runDir: string,
  again: string = sameCommand(runDir),
): void {
  const last = results.at(-1);
  if (last === undefined || last.brokenReceipt === null) return;
  throw new PeriodicEvalError({
    code: "receipt",
    where: `${runDir} phase ${last.phase} step ${last.steps}`,
    got: last.brokenReceipt,
    expected: "measurements that leave training as it was",
    fix: `Mend or leave out what the receipt names, then run ${again}: it goes on from ${last.checkpoint ?? "the start of the phase"}.`,
  });
}

function interrupted(last: TrainResult | undefined, runDir: string, again: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "aborted",
    where: runDir,
    got: `an interrupt${last ? ` in ${last.phase} at step ${last.steps} of ${last.maxSteps}` : ""}`,
    expected: "the end of training",
    fix: `Run ${again} to go on from the last checkpoint.`,
  });
}
