import { isCount, isRecord } from "@periodic-eval/contracts/options";
import { parsePythonJson } from "@periodic-eval/data";

/** Numbers that a trainer logged at a step. */
export interface LoggedMetrics {
  /** Completed optimizer steps. */
  readonly step: number;
  /** Passes over the data; null if the trainer does not log them. */
  readonly epoch: number | null;
  /** Such as `loss` and `learning_rate`, under the trainer's names. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** The parts of `trainer_state.json` that transformers, axolotl and our trainers write alike. */
export interface TrainerState {
  readonly maxSteps: number | null;
  readonly epoch: number | null;
  /** Whether training has ended with this checkpoint: our trainers, and the callback in docs/guides/python.md, say so. */
  readonly isFinished: boolean;
  readonly losses: readonly LoggedMetrics[];
  /** The seed of the training; null if the trainer does not write it. */
  readonly seed: number | string | null;
}

/** Parses the text of `trainer_state.json`. Throws if it is not complete. */
export function readTrainerState(text: string): TrainerState {
  const state = parsePythonJson(text);
  const { max_steps: maxSteps, epoch, finished, log_history: log, seed } = isRecord(state) ? state : {};
  return {
    maxSteps: isCount(maxSteps) && maxSteps > 0 ? maxSteps : null,
    epoch: isNumber(epoch) ? epoch : null,
    isFinished: finished === true,
    losses: Array.isArray(log) ? log.flatMap(loggedMetrics) : [],
    seed: isNumber(seed) || typeof seed === "string" ? seed : null,
  };
}

function loggedMetrics(entry: unknown): readonly LoggedMetrics[] {
  if (!isRecord(entry)) return [];
  const { step, epoch, ...others } = entry;
  const numbers = Object.entries(others).filter((pair): pair is [string, number] => isNumber(pair[1]));
  if (!isCount(step) || numbers.length === 0) return [];
  return [{ step, epoch: isNumber(epoch) ? epoch : null, metrics: Object.fromEntries(numbers) }];
}

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
