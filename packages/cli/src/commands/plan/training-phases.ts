import type { ConfigFile } from "@periodic-eval/core/config";
import { outlineCausalLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { countSteps, type CountOptions } from "@periodic-eval/trainers";
import { throwAll } from "../../config/collect-errors.ts";
import { atPlace, withPlace } from "../../config/config-place.ts";
import { showLoading } from "../../terminal/loading-progress.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { pipelinePhase } from "../train/prepare.ts";
import { parseTrainingFile, phasePathOf, type TrainConfig } from "../train/training-file.ts";
import type { PlannedPhase } from "./plan-block.ts";

/** @throws PeriodicEvalError `config` with file and line; several errors are an AggregateError. */
export function parseWholeTraining(file: ConfigFile): TrainConfig {
  const { config, errors } = parseTrainingFile(file);
  throwAll(errors);
  return config;
}

/**
 * Returns the phases of a training file with the steps that their trainers will count. Rows are only read for `epochs`, which
 * needs the model's tokenizer, but never its weights.
 *
 * @throws PeriodicEvalError with file and line for a model or a dataset that cannot be read.
 */
export async function phasesOf(
  config: TrainConfig,
  file: ConfigFile,
  terminal: Terminal,
): Promise<readonly PlannedPhase[]> {
  const shared: TrainConfig["config"] = { seed: config.seed, ...config.config };
  const needsRows = config.phases.some((phase) => ({ ...shared, ...phase.config })["maxSteps"] == null);
  const outline = needsRows ? await openOutline(config, file, terminal) : null;
  const phases: PlannedPhase[] = [];
  for (const [at, phase] of config.phases.entries()) {
    const options = { config: shared, open: async () => outline! };
    try {
      phases.push({
        name: phase.phase,
        maxSteps: await countSteps(pipelinePhase(config, at, null), options),
      });
    } catch (error) {
      throw atPlace(file, error, phasePathOf(phase, at, config.config));
    }
  }
  return phases;
}

async function openOutline(
  { model: source, tokenizer: tokenizerSource = source }: TrainConfig,
  file: ConfigFile,
  terminal: Terminal,
): ReturnType<CountOptions["open"]> {
  const { onDownload, close } = showLoading(terminal);
  try {
    const key = tokenizerSource === source ? "model" : "tokenizer";
    const tokenizer = await withPlace(file, [key], () => loadTokenizer(tokenizerSource, { onDownload }));
    const model = await withPlace(file, ["model"], () => outlineCausalLM(source, { onDownload }));
    return { tokenizer, model };
  } finally {
    close();
  }
}
