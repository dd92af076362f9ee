import { PeriodicEvalError, type Logger, type Tokenizer } from "@periodic-eval/core";
import { checkWritable } from "@periodic-eval/store";
import { consoleLogger } from "@periodic-eval/loggers/console";
import type { CheckpointLM } from "@periodic-eval/models";
import {
  runPipeline,
  type PipelineOptions,
  type PipelinePhase,
  type TrainResult,
} from "@periodic-eval/trainers";
import { openModel, startBackend } from "../config/open-model.ts";
import { interruptedError, onInterrupt } from "../terminal/interrupt.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface FineTuneOptions extends Pick<
  PipelineOptions,
  "config" | "resume" | "loggers" | "measureOn"
> {
  /** A folder in Hugging Face format, or owner/name on the Hub. */
  readonly model: string;
  /** Default: the model's. */
  readonly tokenizer?: Tokenizer;
  /** Adds an adapter to the model. Training then changes the adapter instead of the model's weights. */
  readonly adapt?: (model: CheckpointLM) => Promise<CheckpointLM>;
  /** Seed of shuffling, dropout and measuring. */
  readonly seed: number;
  readonly runDir: string;
  readonly backend?: string;
  readonly phases: readonly PipelinePhase[];
  /** Called when a phase begins, after its trainer has checked everything. An error ends training. */
  readonly onBegin?: NonNullable<Logger["begin"]>;
  /** The command that resumes the run, for errors. */
  readonly resumeCommand: string;
  /** Whether the caller has said that nothing is measured, so that the console does not repeat it. */
  readonly hasSaidUnmeasured?: boolean;
}

/** Trains phases one after the other on the same weights while callbacks measure. Run again, it resumes. */
export async function fineTune(
  options: FineTuneOptions,
  terminal: Terminal,
): Promise<readonly TrainResult[]> {
  const { model: source, runDir, phases, seed, resume } = options;
  await checkWritable(runDir);
  const { name: engine } = await startBackend(options.backend, terminal);
  const { model, tokenizer } = await openModel(source, terminal, options.tokenizer);
  let adapted: CheckpointLM | null = null;
  const { signal: interrupt, stopListening } = onInterrupt(terminal);
  const failure = new AbortController();
  const signal = AbortSignal.any([interrupt, failure.signal]);
  // An error in a logger is only a warning, so a failing `onBegin` aborts training through the signal.
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
  // The report that follows says what the closing line would.
  const shown = consoleLogger({ ...terminal, closingLine: false });
  const printed: Logger = options.hasSaidUnmeasured ? withoutUnmeasuredLine(shown) : shown;
  terminal.out(`${source} on ${engine}; snapshots go to ${runDir}/periodic_eval`);
  try {
    adapted = (await options.adapt?.(model)) ?? null;
    const results = await runPipeline(phases, {
      model: adapted ?? model,
      tokenizer,
      runDir,
      signal,
      config: { seed, ...options.config },
      loggers: [beginning, printed, ...(options.loggers ?? [])],
      ...(resume && { resume }),
      ...(options.measureOn && { measureOn: options.measureOn }),
    });
    failure.signal.throwIfAborted();
    if (interrupt.aborted) throw interrupted(results.at(-1), runDir, options.resumeCommand);
    return results;
  } finally {
    stopListening();
    adapted?.dispose();
    model.dispose();
  }
}

/** Returns a logger that does not learn that a phase measures nothing. */
const withoutUnmeasuredLine = (logger: Logger): Logger => ({
  ...logger,
  begin(at) {
    const { measuresNothing: _, ...rest } = at;
    return logger.begin?.(rest);
  },
});

/** @throws PeriodicEvalError `receipt` if measuring disturbed the last phase, which ended training. */
export function checkUndisturbed(
  results: readonly TrainResult[],
  runDir: string,
  resumeCommand: string,
): void {
  const last = results.at(-1);
  if (last === undefined || last.brokenReceipt === null) return;
  throw new PeriodicEvalError({
    code: "receipt",
    where: `${runDir} phase ${last.phase} step ${last.steps}`,
    got: last.brokenReceipt,
    expected: "measurements that do not change training",
    fix: `Fix or remove the callback or evaluation that changes training, then run ${resumeCommand} to resume from ${last.checkpoint ?? "the start of the phase"}.`,
  });
}

/** Returns the error of an interrupt, with the step from which the next command continues. */
export function interrupted(
  last: TrainResult | undefined,
  runDir: string,
  resumeCommand: string,
): PeriodicEvalError {
  if (last === undefined) return interruptedError(runDir, "", `Run ${resumeCommand} to start over.`);
  const { phase, steps, maxSteps, checkpoint } = last;
  const [, kept] = /step_(\d+)$/.exec(checkpoint ?? "") ?? [];
  const from =
    kept !== undefined ? `resume from step ${kept}` : steps === 0 ? `begin ${phase}` : `begin ${phase} again`;
  return interruptedError(
    runDir,
    `in ${phase} at step ${steps} of ${maxSteps}`,
    `Run ${resumeCommand} to ${from}.`,
  );
}
