import { PeriodicEvalError, type TrainerCallback } from "@periodic-eval/core";
import { useBackend } from "@periodic-eval/models";
import { runPipeline, type SFTConfig, type TrainResult } from "@periodic-eval/trainers";
import { onInterrupt } from "./interrupt.ts";
import { liveLine } from "./live-line.ts";
import { openModel } from "./open-model.ts";
import type { Terminal } from "./terminal.ts";

export interface FineTunePhase {
  readonly name: string;
  /** Path of conversational JSONL. */
  readonly dataset: string;
  readonly config: Partial<SFTConfig>;
  /** What is measured while it trains. */
  readonly callbacks: readonly TrainerCallback[];
}

export interface FineTuneOptions {
  /** A folder as Hugging Face saves a model, or one of its hub. */
  readonly model: string;
  /** Of shuffling, dropout and measuring. */
  readonly seed: number;
  readonly runDir: string;
  readonly backend?: string;
  readonly phases: readonly FineTunePhase[];
  /** Ceiling of what measuring adds to training; null for none, 20 where it is left out. */
  readonly overheadPercent?: number | null;
}

/** Trains one phase after the other on the same weights, measured live. Run again, it resumes. */
export async function fineTune(
  options: FineTuneOptions,
  terminal: Terminal,
): Promise<readonly TrainResult[]> {
  const { backend, model: source, runDir, phases, seed, overheadPercent } = options;
  const session = overheadPercent === undefined ? {} : { budget: { overheadPercent } };
  const { name: engine, unusable } = await useBackend(backend === undefined ? {} : { backend });
  for (const { name, reason } of unusable) terminal.err(`${name} is installed and did not start: ${reason}`);
  const { model, tokenizer } = await openModel(source, terminal);
  const { signal, stopListening } = onInterrupt();
  terminal.out(`${source} on ${engine}; snapshots go to ${runDir}/periodic_eval`);
  try {
    const results = await runPipeline(
      phases.map(({ name, ...phase }) => ({ phase: name, ...phase })),
      { model, tokenizer, runDir, signal, config: { seed }, session, loggers: [liveLine(terminal)] },
    );
    if (signal.aborted) throw interrupted(results.at(-1), runDir);
    return results;
  } finally {
    stopListening();
    model.dispose();
  }
}

/** @throws PeriodicEvalError `receipt` where measuring disturbed the last phase, which ended training there. */
export function checkUndisturbed(results: readonly TrainResult[], runDir: string): void {
  const last = results.at(-1);
  if (last === undefined || last.brokenReceipt === null) return;
  throw new PeriodicEvalError({
    code: "receipt",
    where: `${runDir} phase ${last.phase} step ${last.steps}`,
    got: last.brokenReceipt,
    expected: "measurements that leave training as it was",
    fix: `Mend or leave out what the receipt names, then run the same command with --run-dir ${runDir}: it goes on from ${last.checkpoint ?? "the start of the phase"}.`,
  });
}

function interrupted(last: TrainResult | undefined, runDir: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "aborted",
    where: runDir,
    got: `an interrupt${last ? ` in ${last.phase} at step ${last.steps} of ${last.maxSteps}` : ""}`,
    expected: "the end of training",
    fix: `Run the same command with --run-dir ${runDir} to go on from the last checkpoint.`,
  });
}
