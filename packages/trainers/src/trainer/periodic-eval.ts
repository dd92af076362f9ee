import {
  buildPeriodicEval,
  periodicEvalConfig,
  type EvaluationRegistry,
  type PeriodicEval,
} from "@periodic-eval/core";
import { checked, fromWritten, optionsAt, configError, isRecord } from "@periodic-eval/contracts/options";
import type { SessionSettings } from "../loop/phase.ts";
import { oneOfTwo } from "./training-config.ts";

/** A `periodic_eval` block among the options of a trainer, a phase or a pipeline. */
export interface BlockOption {
  /** Names the options in errors: `SFTTrainer options`. */
  readonly where: string;
  /** The option `periodicEval`. */
  readonly block: unknown;
  readonly phase: string;
  /** All phases of the run, if known: overrides of any other phase are then an error. */
  readonly phases?: readonly string[];
}

/** Returns an option `periodicEval` that `buildPeriodicEval` has built; null for a block, which has none of its keys. */
export const builtBlock = (option: unknown): PeriodicEval | null =>
  isRecord(option) && Array.isArray(option["callbacks"]) && isRecord(option["session"])
    ? (option as unknown as PeriodicEval)
    : null;

/**
 * Checks a block for one phase, as far as it shows without opening a judge.
 *
 * @throws PeriodicEvalError `config` with a path that begins with `periodicEval`.
 */
export function checkBlock(option: BlockOption, session: SessionSettings = {}): void {
  const { where, block } = option;
  const saves = builtBlock(block)?.saveAdapterAtFiring ?? configOf(option).save_adapter_at_firing;
  if (saves && session.saveAtFiring !== undefined)
    throw oneOfTwo(
      where,
      ["periodicEval", "save_adapter_at_firing"],
      "true together with the session's saveAtFiring",
    );
}

/** Whether a block has conditions that end training. A block that measures nothing, perhaps only for now, counts as if it had. */
export function hasConditions(option: BlockOption): boolean {
  const built = builtBlock(option.block);
  if (built !== null) return built.callbacks.length === 0 || (built.session.stopWhen ?? []).length > 0;
  const { enabled, stop_when: conditions } = configOf(option);
  return !enabled || conditions.length > 0;
}

const blockOf = (where: string) => ({ ...optionsAt(where, ["periodicEval"]), root: "periodic_eval" });

function configOf({ where, block, phase, phases }: BlockOption): ReturnType<typeof periodicEvalConfig> {
  return checked(blockOf(where), () => periodicEvalConfig(block, phase, phases));
}

/**
 * Builds the callbacks and session options of a block for one phase, unless they are built. @periodic-eval/models opens a judge that
 * runs in this process, @periodic-eval/remote any other; entries of `evaluations` are tasks of @periodic-eval/tasks.
 *
 * @throws PeriodicEvalError as `buildPeriodicEval`, with a path that begins with `periodicEval`.
 */
export async function buildBlock(option: BlockOption): Promise<PeriodicEval> {
  const { where, block, phase, phases } = option;
  const built = builtBlock(block);
  if (built !== null) return built;
  const { evaluations: entries, enabled } = configOf(option);
  const evaluations = enabled && entries.length > 0 ? await installedTasks(where) : {};
  const parts = await fromWritten(blockOf(where), () =>
    buildPeriodicEval(block, { phase, evaluations, ...(phases && { phases }) }),
  );
  if (parts.notify === undefined) return parts;
  throw configError({
    where,
    path: ["periodicEval", "notify"],
    got: "an option of the command line",
    expected: "no `notify` in code",
    fix: "Pass `notifyLogger` of @periodic-eval/loggers/notify in `loggers`.",
  });
}

/** The package is not a dependency, so bundlers and the compiler must not follow this import. */
const tasksPackage: string = "@periodic-eval/tasks";

interface TasksPackage {
  readonly tasks: unknown;
  readonly evaluationsOf: (tasks: unknown) => EvaluationRegistry;
}

async function installedTasks(where: string): Promise<EvaluationRegistry> {
  try {
    const { evaluationsOf, tasks } = (await import(/* @vite-ignore */ tasksPackage)) as TasksPackage;
    return evaluationsOf(tasks);
  } catch (cause) {
    throw configError({
      where,
      path: ["periodicEval", "evaluations"],
      got: `evaluations, and ${tasksPackage}, which defines them, cannot be imported`,
      expected: "the package",
      fix: `Run npm install ${tasksPackage}, or build the callbacks with buildPeriodicEval.`,
      cause,
    });
  }
}
