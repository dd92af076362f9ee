import type { Logger, PeriodicEval } from "@periodic-eval/core";
import { valueAt } from "@periodic-eval/contracts/options";
import {
  atPlace,
  fileError,
  isTrainingFile,
  noBlockText,
  phaseNames,
  readEvalBlock,
  withOptionPlace,
} from "../../config/config-file.ts";
import { buildBlock, type LoadTasks } from "../../config/open-grader.ts";
import { openLoggers, openNotify } from "../../config/open-loggers.ts";

export interface WatchCommandOptions {
  readonly base: string;
  readonly tokenizer?: string;
  readonly config?: string;
  readonly runDir: string;
  readonly phase?: string;
  readonly follow: boolean;
  readonly order: "all" | "latest";
  readonly pattern?: string;
  readonly engine?: readonly string[];
  readonly backend?: string;
  readonly json: boolean;
}

/** The evaluations of checkpoints, and the loggers that receive their results. */
export interface WatchConfiguration {
  readonly phase: string;
  readonly seed: string;
  readonly block: PeriodicEval;
  readonly loggers: readonly Logger[];
  /** Returns an error about options as one about the file, with its line. */
  place(error: unknown): unknown;
}

interface ConfigurationOptions {
  /** A file, or a block; its defaults without either. */
  readonly config?: string | Readonly<Record<string, unknown>> | null;
  readonly phase?: string;
  readonly runDir: string;
  readonly canMeasureOn?: boolean;
}

/**
 * Builds the `periodic_eval` block of a file as `train` does, and opens the file's loggers. Without a file: the defaults of the
 * block.
 *
 * @throws PeriodicEvalError with file and line for a wrong value.
 */
export async function configure(
  { config, phase: requested, runDir, canMeasureOn = false }: ConfigurationOptions,
  loadTasks: LoadTasks,
): Promise<WatchConfiguration> {
  if (typeof config !== "string") {
    const phase = requested ?? "train";
    const block = await buildBlock(config ?? {}, loadTasks, { phase, runDir, canMeasureOn });
    return {
      phase,
      seed: "42",
      block,
      loggers: await openNotify(block.notify, runDir, null),
      place: (error) => error,
    };
  }
  const { file, at, block } = await readEvalBlock(config);
  if (isTrainingFile(file) && at.length === 0)
    throw fileError(file, [], {
      got: "a training file without a periodic_eval block",
      expected: "a block that says what to measure",
      fix: noBlockText(config),
    });
  const phases = phaseNames(file);
  const phase = requested ?? (phases.length === 1 ? phases[0]! : "train");
  // A phase of another trainer need not be in the file.
  const known = phases.length > 0 && { phases: [...new Set([...phases, phase])] };
  const built = await withOptionPlace(file, at, () =>
    buildBlock(block, loadTasks, { phase, runDir, canMeasureOn, ...known }),
  );
  const seed = valueAt(file.value, ["seed"]);
  const notify = await openNotify(built.notify, runDir, { file, at });
  return {
    phase,
    seed: typeof seed === "number" ? String(seed) : "42",
    block: built,
    loggers: [...(await openLoggers(file, valueAt(file.value, ["loggers"]), runDir)), ...notify],
    place: (error) => atPlace(file, error, (option) => [...at, ...option]),
  };
}
