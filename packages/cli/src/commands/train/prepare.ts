import { buildPeriodicEval, type BuildOptions, type Logger, type Tokenizer } from "@periodic-eval/core";
import { checkRequests } from "@periodic-eval/core/session";
import { inMemory, type CausalLM } from "@periodic-eval/core/tfjs";
import { outlineCausalLM, useBackend, type CausalLMOutline } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import {
  checkDatasets,
  checkOrder,
  checkPipeline,
  type OutlinedLM,
  type PipelinePhase,
} from "@periodic-eval/trainers";
import type { ValuePath } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/core/config";
import { blockErrorPath } from "../../config/config-paths.ts";
import { withBlockPlace, withPlace, withOptionPlace, placed } from "../../config/config-place.ts";
import { allOf, throwAll } from "../../config/collect-errors.ts";
import { loadingLine } from "../../terminal/loading-line.ts";
import { openGrader } from "../../config/open-grader.ts";
import { loggerNames, openLogger } from "../../config/open-loggers.ts";
import { loadEvaluations, loadTasks, type LoadTasks } from "../../config/task-registry.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { phaseErrorPath, type ParsedTraining, type TrainConfig } from "./training-file.ts";

/** What a file describes, as a pipeline takes it. */
export interface PreparedTraining {
  readonly phases: readonly PipelinePhase[];
  readonly loggers: readonly Logger[];
  readonly tokenizer: Tokenizer;
}

/**
 * Makes everything of a training but the model, and checks it against what the model's folder tells of it: every phase,
 * before any weight is loaded.
 *
 * @throws PeriodicEvalError with file, line and key, or an AggregateError of several: for options, names,
 *   files and rows that are wrong in any phase.
 */
export async function prepareTraining(
  parsed: ParsedTraining,
  file: ConfigFile,
  terminal: Terminal,
  tasks: LoadTasks = loadTasks,
): Promise<PreparedTraining> {
  const { config, wrong } = parsed;
  const { onDownload, close } = loadingLine(terminal);
  const { model: source, tokenizer: words = source, run_dir: runDir } = config;
  const tokenizer = withPlace(file, [words === source ? "model" : "tokenizer"], () =>
    loadTokenizer(words, { onDownload }),
  );
  const outline = async () => withPlace(file, ["model"], () => outlineCausalLM(source, { onDownload }));
  // One after the other: both may fetch into the same folder.
  const outlined = tokenizer.then(outline, outline);
  const phases = allOf(
    config.phases.map(async (_, at) => {
      const block = blockOf(parsed, at, file, tasks);
      // Where its block is wrong, what else is wrong with a phase is told too.
      const phase = phaseOf(config, at, await block.catch(() => ({})));
      const checked = Promise.all([outlined, tokenizer]).then(([model, words]) =>
        checkPhase(parsed, at, { file, phase, model, tokenizer: words }),
      );
      await allOf([block, checked]);
      return phase;
    }),
  );
  const loggers = allOf(
    loggerNames.flatMap((name) => {
      const options = config.loggers[name];
      if (options === undefined) return [];
      return [withOptionPlace(file, ["loggers", name], options, () => openLogger(name, runDir, options))];
    }),
  );
  const { phases: listed, resume } = config;
  const order = withPlace(file, ["phases"], () => checkOrder(listed, { runDir, resume }));
  const { backend } = config;
  const engine =
    backend === undefined ? useBackend() : withPlace(file, ["backend"], () => useBackend({ backend }));
  const adapter = outlined.then((model) => checkAdapter(config, file, model));
  try {
    const mistakes = allOf(wrong.map((error) => Promise.reject(error)));
    const made = await allOf([mistakes, tokenizer, outlined, adapter, phases, loggers, order, engine]);
    return { tokenizer: made[1], phases: made[4], loggers: made[5] };
  } finally {
    close();
  }
}

async function checkAdapter(
  { lora, adapter, seed }: TrainConfig,
  file: ConfigFile,
  model: CausalLMOutline,
): Promise<void> {
  await allOf([
    lora && withOptionPlace(file, ["lora"], lora, () => model.checkLora({ seed: String(seed), ...lora })),
    adapter !== undefined && withPlace(file, ["adapter"], () => model.checkAdapter(adapter)),
  ]);
}

type BlockOfPhase = Pick<PipelinePhase, "callbacks" | "session" | "config">;

/** What the `periodic_eval` block makes of a phase. */
async function blockOf(
  { config, blockPlace }: ParsedTraining,
  at: number,
  file: ConfigFile,
  tasks: LoadTasks,
): Promise<BlockOfPhase> {
  const { run_dir: runDir, phases } = config;
  const { phase } = phases[at]!;
  const evaluations = await loadEvaluations(tasks);
  const build: BuildOptions = {
    phase,
    phases: phases.map((one) => one.phase),
    // Verdicts are kept with the run, unless the block names a folder.
    openJudge: (model, options) => openGrader(model, { runDir, ...options }),
    evaluations,
  };
  const { callbacks, session, saveAdapterAtFiring } = await withBlockPlace(file, blockPlace, () =>
    buildPeriodicEval({ periodic_eval: config.periodic_eval }, build),
  );
  return { callbacks, session, ...(saveAdapterAtFiring && { config: { saveAdapterAtFiring } }) };
}

function phaseOf(config: TrainConfig, at: number, block: BlockOfPhase): PipelinePhase {
  const { phase, method, dataset, validation, reference, config: own } = config.phases[at]!;
  const shared = {
    phase,
    dataset,
    ...(validation !== undefined && { validation }),
    ...block,
    config: { ...own, ...block.config },
  };
  return method === "dpo" ? { ...shared, method, ...(reference !== undefined && { reference }) } : shared;
}

/** All that checks look at must be told of a model that is not loaded: what is left out would be refused of every one. */
type ToldLM = Required<Omit<OutlinedLM, "base" | "fixedLength">>;

interface PhaseToCheck {
  readonly file: ConfigFile;
  readonly phase: PipelinePhase;
  readonly model: ToldLM;
  readonly tokenizer: Tokenizer;
}

async function checkPhase(
  { config, blockPlace }: ParsedTraining,
  at: number,
  { file, phase, model: bare, tokenizer }: PhaseToCheck,
): Promise<void> {
  const isAdapted = (config.lora ?? config.adapter) !== undefined;
  const model: OutlinedLM = isAdapted ? { ...bare, base: bare } : bare;
  const options = { model, tokenizer, config: config.config, runDir: config.run_dir };
  const wrong: unknown[] = [];
  try {
    checkPipeline([phase], options);
    wrong.push(...(await checkDatasets(phase, options)));
  } catch (error) {
    wrong.push(error);
  }
  const placeOf = (error: unknown) =>
    file.where(phaseErrorPath(config.phases[at]!, at, config.config, error));
  const { periodic_eval: block, phases } = config;
  const placeInBlock = (error: unknown): ValuePath => [
    ...blockPlace,
    ...blockErrorPath(block, [phases[at]!.phase], error),
  ];
  const asked = await checkRequests({
    callbacks: phase.callbacks ?? [],
    ...phase.session,
    model: inMemory(model as CausalLM, tokenizer),
  });
  throwAll([
    ...wrong.map((error) => placed(placeOf(error), error)),
    ...asked.map((error) => placed(file.where(placeInBlock(error)), error)),
  ]);
}
