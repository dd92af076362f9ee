import { readConfigFile, type FlagOverride } from "@periodic-eval/core/config";
import { loadLora, withLora, type CheckpointLM } from "@periodic-eval/models";
import { noBlockText } from "../../config/eval-block.ts";
import type { LoadTasks } from "../../config/task-registry.ts";
import { checkUndisturbed, fineTune, type FineTuneOptions } from "../../run/fine-tune.ts";
import { withServedRun } from "../../run/serve-run.ts";
import { reportRun } from "../../run/report-run.ts";
import { progressOnly, type Terminal } from "../../terminal/terminal.ts";
import type { TrainOptions } from "./command.ts";
import { openKeptConfig } from "./kept-config.ts";
import { prepareTraining } from "./prepare.ts";
import { parseTrainingFile } from "./training-file.ts";

/**
 * Trains the phases that a file describes and prints the report. Run again, it resumes.
 *
 * @param overrides Override the file's values: `phases.0.config.maxSteps=10`.
 * @throws PeriodicEvalError with file and line for every error that shows before weights are loaded. By then only the list of
 *   bad rows has been written. Several errors are an AggregateError.
 */
export async function train(
  path: string,
  overrides: readonly (string | FlagOverride)[],
  { json, serve }: Pick<TrainOptions, "json" | "serve">,
  { terminal, loadTasks }: { readonly terminal: Terminal; readonly loadTasks: LoadTasks },
): Promise<void> {
  const progress = json ? progressOnly(terminal) : terminal;
  const file = await readConfigFile(path, overrides);
  const parsed = parseTrainingFile(file);
  const { config } = parsed;
  const { run_dir: runDir, model, backend, seed, resume, lora, adapter } = config;
  const { phases, loggers, tokenizer, server } = await prepareTraining(parsed, progress, loadTasks);
  const hasSaidUnmeasured = config.periodic_eval === undefined;
  if (hasSaidUnmeasured) progress.out(noBlockText(path));
  const { differences, keep } = await openKeptConfig(config);
  for (const difference of differences) progress.err(difference);
  // A phase that begins has passed its trainer's checks. Phases that are already finished do not use the new configuration.
  const onBegin: FineTuneOptions["onBegin"] = ({ alreadyFinished }) =>
    alreadyFinished === true ? undefined : keep();
  const adapt = async (base: CheckpointLM) =>
    adapter === undefined ? withLora(base, { seed: String(seed), ...lora }) : loadLora(base, adapter);
  // The same command with resume=never would start over again.
  const resumeCommand = resume === "never" ? "the same command with resume=auto" : "the same command";
  const beside = config.engine?.beside;
  const measureOn = server && { server, ...(beside !== undefined && { beside }) };
  const results = await withServedRun(runDir, { serve, terminal: progress }, async () =>
    fineTune(
      {
        model,
        runDir,
        seed,
        resume,
        phases,
        loggers,
        onBegin,
        config: config.config,
        resumeCommand,
        tokenizer,
        hasSaidUnmeasured,
        ...(backend !== undefined && { backend }),
        ...((lora ?? adapter) !== undefined && { adapt }),
        ...(measureOn && { measureOn }),
      },
      progress,
    ),
  ).finally(() => server?.dispose());
  await reportRun(runDir, { json }, terminal);
  checkUndisturbed(results, runDir, resumeCommand);
}
