import { loadLora, withLora, type CheckpointLM } from "@periodic-eval/models";
import type { TrainResult } from "@periodic-eval/trainers";
import { readConfigFile } from "@periodic-eval/core/config";
import { fineTune, type FineTuneOptions } from "../../run/fine-tune.ts";
import { prepareTraining } from "./prepare.ts";
import { openRunConfig } from "./kept-config.ts";
import type { LoadTasks } from "../../config/task-registry.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { parseTrainConfig } from "./training-file.ts";

/**
 * Trains the phases that a file describes, each measured as its `periodic_eval` block says. Run again, it goes on where it
 * was stopped or killed.
 *
 * @returns also the command that goes on, for errors
 * @param overrides `phases.0.config.maxSteps=10`; they win over the file
 * @throws PeriodicEvalError with file and line before weights are loaded or anything is written but the list of bad rows,
 *   for all that shows by then; several together are an AggregateError.
 */
export async function trainFromConfig(
  path: string,
  overrides: readonly string[],
  terminal: Terminal,
  tasks?: LoadTasks,
): Promise<{ readonly runDir: string; readonly results: readonly TrainResult[]; readonly again: string }> {
  const file = await readConfigFile(path, overrides);
  const parsed = parseTrainConfig(file);
  const { config } = parsed;
  const { run_dir: runDir, model, backend, seed, resume, lora, adapter } = config;
  const { phases, loggers, tokenizer } = await prepareTraining(parsed, file, terminal, tasks);
  const { differences, keep } = await openRunConfig(config);
  for (const difference of differences) terminal.err(difference);
  // A phase begins once its trainer has found nothing to refuse; of a finished one nothing is trained by what is new.
  const onBegin: FineTuneOptions["onBegin"] = ({ phase, step, maxSteps }) =>
    step < (maxSteps ?? Infinity) || phase === phases.at(-1)!.phase ? keep() : undefined;
  const adapt = async (base: CheckpointLM) =>
    adapter === undefined ? withLora(base, { seed: String(seed), ...lora }) : loadLora(base, adapter);
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
      onBegin,
      config: config.config,
      again,
      tokenizer,
      ...(backend !== undefined && { backend }),
      ...((lora ?? adapter) !== undefined && { adapt }),
    },
    terminal,
  );
  return { runDir, results, again };
}
