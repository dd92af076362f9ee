import { PeriodicEvalError, type Logger } from "@periodic-eval/core";
import { checkWritable } from "@periodic-eval/store";
import { consoleLogger } from "@periodic-eval/loggers/console";
import { loadLora, withLora, type CheckpointLM } from "@periodic-eval/models";
import { runPipeline, type TrainResult } from "@periodic-eval/trainers";
import { openModel, startBackend } from "../../config/open-model.ts";
import { interruptedError, onInterrupt } from "../../terminal/interrupt.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import type { KeptConfig } from "./kept-config.ts";
import type { PreparedTraining } from "./prepare.ts";
import type { TrainConfig } from "./training-file.ts";

/**
 * Trains phases one after the other on the same weights while callbacks measure. Run again, it resumes.
 *
 * @param keep Called when a phase begins, after its trainer has checked everything. An error ends training.
 * @param resumeCommand The command that resumes the run, for errors.
 */
export async function fineTune(
  config: TrainConfig,
  { phases, loggers, tokenizer: prepared, server }: PreparedTraining,
  { keep, resumeCommand }: Pick<KeptConfig, "keep"> & { readonly resumeCommand: string },
  terminal: Terminal,
): Promise<readonly TrainResult[]> {
  const { model: source, run_dir: runDir, seed, resume, lora, adapter } = config;
  await checkWritable(runDir);
  const { name: engine } = await startBackend(config.backend, terminal);
  const { model, tokenizer } = await openModel(source, terminal, prepared);
  let adapted: CheckpointLM | null = null;
  const { signal: interrupt, stopListening } = onInterrupt(terminal);
  const failure = new AbortController();
  // An error in a logger is only a warning, so a failing `keep` aborts training through the signal.
  const beginning: Logger = {
    name: "begin",
    async begin({ alreadyFinished }) {
      // Phases that are already finished do not use the new configuration.
      if (alreadyFinished !== true) await keep().catch((error: unknown) => failure.abort(error));
    },
  };
  // The report that follows says what the closing line would.
  const shown = consoleLogger({ ...terminal, closingLine: false });
  const printed = config.periodic_eval === undefined ? withoutUnmeasuredLine(shown) : shown;
  terminal.out(`${source} on ${engine}; snapshots go to ${runDir}/periodic_eval`);
  try {
    if (adapter !== undefined) adapted = await loadLora(model, adapter);
    else if (lora !== undefined) adapted = withLora(model, { seed: String(seed), ...lora });
    const results = await runPipeline(phases, {
      model: adapted ?? model,
      tokenizer,
      runDir,
      signal: AbortSignal.any([interrupt, failure.signal]),
      config: { seed, ...config.config },
      loggers: [beginning, printed, ...loggers],
      resume,
      ...(server !== null && { measureOn: { server } }),
    });
    failure.signal.throwIfAborted();
    if (interrupt.aborted) throw interrupted(results.at(-1), runDir, resumeCommand);
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
  const [, step] = /step_(\d+)$/.exec(checkpoint ?? "") ?? [];
  const from =
    step !== undefined ? `resume from step ${step}` : steps === 0 ? `begin ${phase}` : `begin ${phase} again`;
  return interruptedError(
    runDir,
    `in ${phase} at step ${steps} of ${maxSteps}`,
    `Run ${resumeCommand} to ${from}.`,
  );
}
