import { buildPeriodicEval, type Logger, type PeriodicEval } from "@periodic-eval/core";
import { isRecord } from "@periodic-eval/contracts/options";
import { valueAt } from "./config-paths.ts";
import { fileError, withOptionPlace } from "./config-place.ts";
import { isTrainingFile, noBlockText, readEvalBlock, type EvalBlock } from "./eval-block.ts";
import { openGrader } from "./open-grader.ts";
import { openLoggers } from "./open-loggers.ts";
import { loadEvaluations, type LoadTasks } from "./task-registry.ts";

/** The evaluations of a training by another program, and the loggers that receive their results. */
export interface EvalConfiguration {
  readonly phase: string;
  readonly seed: string;
  readonly block: PeriodicEval;
  readonly loggers: readonly Logger[];
}

interface ConfigurationOptions {
  /** A file, or a block; its defaults without either. */
  readonly config?: string | Readonly<Record<string, unknown>> | null;
  readonly phase?: string;
  readonly runDir: string;
}

/**
 * Builds the `periodic_eval` block of a file as `train` does, and opens the file's loggers. Without a file: the defaults of the
 * block.
 *
 * @throws PeriodicEvalError with file and line for a wrong value.
 */
export async function configure(
  { config, phase: given, runDir }: ConfigurationOptions,
  loadTasks: LoadTasks,
): Promise<EvalConfiguration> {
  const build = async (block: unknown, phase: string, phases: readonly string[]) =>
    buildPeriodicEval(
      { periodic_eval: block },
      {
        phase,
        ...(phases.length > 0 && { phases }),
        openJudge: (model, options) => openGrader(model, { runDir, ...options }),
        evaluations: await loadEvaluations(loadTasks),
      },
    );
  if (typeof config !== "string") {
    const phase = given ?? "train";
    return { phase, seed: "42", block: await build(config ?? {}, phase, []), loggers: [] };
  }
  const read = await readEvalBlock(config);
  const { file, at, block } = read;
  if (isTrainingFile(file) && at.length === 0)
    throw fileError(file, [], {
      got: "a training file without a periodic_eval block",
      expected: "a block that says what to measure",
      fix: noBlockText(config),
    });
  const phases = phaseNames(read);
  const phase = given ?? (phases.length === 1 ? phases[0]! : "train");
  // A phase of another trainer need not be in the file.
  const known = phases.length === 0 ? [] : [...new Set([...phases, phase])];
  const built = await withOptionPlace(file, at, () => build(block, phase, known));
  const seed = valueAt(file.value, ["seed"]);
  return {
    phase,
    seed: typeof seed === "number" ? String(seed) : "42",
    block: built,
    loggers: await openLoggers(file, valueAt(file.value, ["loggers"]), runDir),
  };
}

function phaseNames({ file }: EvalBlock): readonly string[] {
  const phases = isTrainingFile(file) ? (valueAt(file.value, ["phases"]) as readonly unknown[]) : [];
  return phases.flatMap((one) => (isRecord(one) && typeof one["phase"] === "string" ? [one["phase"]] : []));
}
