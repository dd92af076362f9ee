import { buildPeriodicEval, PeriodicEvalError, type BuildOptions } from "@periodic-eval/core";
import { fileVerdictCache } from "@periodic-eval/core/snapshots";
import { loadLora, withLora, type CheckpointLM } from "@periodic-eval/models";
import type { PipelinePhase, TrainResult } from "@periodic-eval/trainers";
import { join } from "node:path";
import { readConfigFile, type ConfigFile, type ValuePath } from "./config-file.ts";
import { fineTune } from "./fine-tune.ts";
import { loggerOpeners } from "./open-loggers.ts";
import { keepRunConfig } from "./run-config.ts";
import type { Terminal } from "./terminal.ts";
import { inPlace, parseTrainConfig, type TrainConfig } from "./train-config.ts";

/**
 * Trains the phases that a file describes, each measured as its `periodic_eval` block says. Run again, it goes on where it
 * was stopped or killed.
 *
 * @returns also the command that goes on, for errors
 * @param overrides `phases.0.config.maxSteps=10`; they win over the file
 * @throws PeriodicEvalError `config` before anything is loaded or written, with file and line.
 */
export async function trainFromConfig(
  path: string,
  overrides: readonly string[],
  terminal: Terminal,
): Promise<{ readonly runDir: string; readonly results: readonly TrainResult[]; readonly again: string }> {
  const file = await readConfigFile(path, overrides);
  const config = parseTrainConfig(path, file);
  const { run_dir: runDir, model, tokenizer, backend, seed, resume, lora, adapter } = config;
  const phases = await Promise.all(config.phases.map((phase) => phaseOf(config, phase, file)));
  const loggers = await Promise.all(
    Object.entries(config.loggers).map(([name, options]) =>
      inFile(file, ["loggers", name], () => loggerOpeners[name]!(runDir, options)),
    ),
  );
  for (const difference of await keepRunConfig(config)) terminal.err(difference);
  const adapt = async (base: CheckpointLM) =>
    adapter === undefined
      ? inPlace(file.where(["lora"]), () => withLora(base, { seed: String(seed), ...lora }))
      : loadLora(base, adapter);
  // The same command would begin anew once more.
  const again = resume === "never" ? "the same command with resume=auto" : "the same command";
  const results = await fineTune(
    {
      model,
      runDir,
      seed,
      resume,
      phases,
      loggers,
      config: config.config,
      again,
      ...(tokenizer !== undefined && { tokenizer }),
      ...(backend !== undefined && { backend }),
      ...((lora ?? adapter) !== undefined && { adapt }),
    },
    terminal,
  );
  return { runDir, results, again };
}

async function phaseOf(
  config: TrainConfig,
  { phase, method, dataset, validation, reference, config: own }: TrainConfig["phases"][number],
  file: ConfigFile,
): Promise<PipelinePhase> {
  const openJudge = await judgeOpener(config);
  const build = { phase, phases: config.phases.map((one) => one.phase), openJudge };
  const { callbacks, session, store, saveAdapterAtFiring } = await inBlock(file, () =>
    buildPeriodicEval({ periodic_eval: config.periodic_eval }, build),
  );
  if (store.layout !== "nested") {
    throw new PeriodicEvalError({
      code: "config",
      where: file.where(["periodic_eval", "layout"]),
      got: `"${store.layout}"`,
      expected: '"nested", as trainers write',
      fix: "Leave layout out.",
    });
  }
  const shared = {
    phase,
    dataset,
    ...(validation !== undefined && { validation }),
    callbacks,
    session,
    config: { ...own, ...(saveAdapterAtFiring && { saveAdapterAtFiring }) },
  };
  return method === "dpo" ? { ...shared, method, ...(reference !== undefined && { reference }) } : shared;
}

/** Judges as `openJudge` of @periodic-eval/remote names them. Verdicts are kept with the run, unless the block names a folder. */
async function judgeOpener({ run_dir }: TrainConfig): Promise<NonNullable<BuildOptions["openJudge"]>> {
  const { openJudge } = await import("@periodic-eval/remote");
  const cache = fileVerdictCache(join(run_dir, "verdicts"));
  return (model, options) => openJudge(model ?? undefined, { cache, ...options });
}

/** Core says where in the block it is; here it is said where in the file. */
async function inBlock<T>(file: ConfigFile, build: () => Promise<T>): Promise<T> {
  try {
    return await build();
  } catch (error) {
    const path = PeriodicEvalError.is(error) ? error.where.split(".") : [];
    return inFile(file, path[0] === "periodic_eval" ? path : ["periodic_eval"], () => {
      throw error;
    });
  }
}

async function inFile<T>(file: ConfigFile, path: ValuePath, make: () => T | Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    return inPlace(file.where(path), () => {
      throw error;
    });
  }
}
