import {
  buildPeriodicEval,
  type Logger,
  type PeriodicEval,
  type PeriodicEvalError,
  type Tokenizer,
} from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/core/config";
import { checkWritable, errnoOf } from "@periodic-eval/store";
import { checkRequests } from "@periodic-eval/core/session";
import { inMemory, type CausalLM } from "@periodic-eval/tfjs";
import { outlineCausalLM, useBackend, type CausalLMOutline } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import type { ServedModel } from "@periodic-eval/remote";
import {
  checkDatasets,
  checkOrder,
  checkPipeline,
  checkSources,
  type OutlinedLM,
  type PipelinePhase,
} from "@periodic-eval/trainers";
import { awaitAll, throwAll, atPlace, withOptionPlace, withPlace } from "../../config/config-file.ts";
import { connectServer } from "../../config/open-model.ts";
import { openGrader, loadEvaluations, loadTasks, type LoadTasks } from "../../config/open-grader.ts";
import { openLoggers } from "../../config/open-loggers.ts";
import { showLoading } from "../../terminal/progress.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { phasePathOf, type ParsedTraining, type TrainConfig } from "./training-file.ts";

/** The training that a file describes, ready for a pipeline. */
export interface PreparedTraining {
  readonly phases: readonly PipelinePhase[];
  readonly loggers: readonly Logger[];
  readonly tokenizer: Tokenizer;
  /** The server of `engine`; null without one. The caller disposes it. */
  readonly server: ServedModel | null;
}

/**
 * Prepares every part of a training except the model's weights, and checks all phases against the model's configuration, so
 * that errors show before weights are loaded.
 *
 * @throws PeriodicEvalError with file, line and path for a wrong option, name, file or row in any phase. Several errors are an
 *   AggregateError.
 */
export async function prepareTraining(
  parsed: ParsedTraining,
  terminal: Terminal,
  tasks: LoadTasks = loadTasks,
): Promise<PreparedTraining> {
  const { file, config, errors } = parsed;
  await withPlace(file, ["run_dir"], () => checkRunDirWritable(config.run_dir));
  const { onDownload, close } = showLoading(terminal);
  const { model: source, tokenizer: tokenizerSource = source, run_dir: runDir, backend } = config;
  const tokenizer = withPlace(file, [tokenizerSource === source ? "model" : "tokenizer"], () =>
    loadTokenizer(tokenizerSource, { onDownload }),
  );
  const openOutline = async () => withPlace(file, ["model"], () => outlineCausalLM(source, { onDownload }));
  // One after the other, because both may download into the same folder.
  const outline = tokenizer.then(openOutline, openOutline);
  const loggers = openLoggers(file, config.loggers, runDir);
  const { phases: listed, resume } = config;
  const order = withPlace(file, ["phases"], () => checkOrder(listed, { runDir, resume }));
  const engine =
    backend === undefined ? useBackend() : withPlace(file, ["backend"], () => useBackend({ backend }));
  const server = tokenizer.then((loaded) => openServer(config, file, loaded));
  const phases = preparePhases(parsed, { file, tasks, outline, tokenizer, engine, server });
  const adapter = outline.then((model) => checkAdapter(config, file, model));
  try {
    const fileErrors = awaitAll(errors.map((error) => Promise.reject(error)));
    const [, loadedTokenizer, , , preparedPhases, openedLoggers, opened] = await awaitAll([
      fileErrors,
      tokenizer,
      outline,
      adapter,
      phases,
      loggers,
      server,
      order,
      engine,
    ]);
    return { tokenizer: loadedTokenizer, phases: preparedPhases, loggers: openedLoggers, server: opened };
  } finally {
    close();
  }
}

const openServer = ({ engine, model }: TrainConfig, file: ConfigFile, tokenizer: Tokenizer) =>
  engine === undefined
    ? null
    : withPlace(file, ["engine"], async () => (await connectServer(engine, model, tokenizer)).served);

/** Throws at once for a run folder that cannot be written to. The trainers report a file in its place, with all other errors. */
async function checkRunDirWritable(runDir: string): Promise<void> {
  await checkWritable(runDir).catch((error: PeriodicEvalError) => {
    if (!["EEXIST", "ENOTDIR"].includes(errnoOf(error.cause) ?? "")) throw error;
  });
}

async function checkAdapter(
  { lora, adapter, seed }: TrainConfig,
  file: ConfigFile,
  model: CausalLMOutline,
): Promise<void> {
  await awaitAll([
    lora && withOptionPlace(file, ["lora"], () => model.checkLora({ seed: String(seed), ...lora })),
    adapter !== undefined && withPlace(file, ["adapter"], () => model.checkAdapter(adapter)),
  ]);
}

interface PhaseContext {
  readonly file: ConfigFile;
  readonly tasks: LoadTasks;
  readonly outline: Promise<ModelOutline>;
  readonly tokenizer: Promise<Tokenizer>;
  readonly engine: Promise<unknown>;
  readonly server: Promise<ServedModel | null>;
}

const preparePhases = (
  parsed: ParsedTraining,
  { file, tasks, outline, tokenizer, engine, server }: PhaseContext,
) =>
  awaitAll(
    parsed.config.phases.map(async (_, at) => {
      const built = buildBlock(parsed, at, file, tasks);
      // A wrong block does not keep the phase's other errors from being reported.
      const block = await built.catch(() => null);
      const phase = pipelinePhase(parsed.config, at, block);
      // Missing rows are reported even if the model is missing too.
      const missing = checkSources(phase);
      const checked = awaitAll([outline, tokenizer, server, engine.catch(() => null)]).then(
        async ([model, loaded, served]) =>
          checkPhase(parsed, at, {
            file,
            phase,
            block,
            model,
            served,
            tokenizer: loaded,
            missing: await missing,
          }),
      );
      const sources = missing.then((problems) => throwAll(trainerErrorsAt(parsed, at, file, problems)));
      await awaitAll([built, checked, sources]);
      return phase;
    }),
  );

/** Builds the `periodic_eval` block of a file for a phase; null without a block. */
async function buildBlock(
  { config, blockPath }: ParsedTraining,
  at: number,
  file: ConfigFile,
  tasks: LoadTasks,
): Promise<PeriodicEval | null> {
  const { run_dir: runDir, phases, periodic_eval: block } = config;
  if (block === undefined) return null;
  const evaluations = await loadEvaluations(tasks);
  return withOptionPlace(file, blockPath, () =>
    buildPeriodicEval(
      { periodic_eval: block },
      {
        phase: phases[at]!.phase,
        phases: phases.map(({ phase }) => phase),
        openJudge: (model, options) => openGrader(model, { runDir, ...options }),
        evaluations,
      },
    ),
  );
}

/**
 * Returns a phase of a training file as a phase of a pipeline.
 *
 * @param block The `periodic_eval` block, built for this phase; null without one.
 */
export function pipelinePhase(
  { phases }: TrainConfig,
  at: number,
  block: PeriodicEval | null,
): PipelinePhase {
  const { phase, method, dataset, validation, reference, config } = phases[at]!;
  const shared = {
    phase,
    dataset,
    config,
    ...(validation !== undefined && { validation }),
    ...(block !== null && { periodicEval: block }),
  };
  return method === "dpo" ? { ...shared, method, ...(reference !== undefined && { reference }) } : shared;
}

/** Every field that a check reads is required: a check rejects every value that is left out. */
type ModelOutline = Required<Omit<OutlinedLM, "base" | "fixedLength" | "trainingMemory">> &
  Pick<CausalLMOutline, "trainingMemory" | "checkLora">;

/** Whether a check throws nothing; what it throws is reported elsewhere. */
function isAccepted(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

interface PhaseToCheck {
  readonly file: ConfigFile;
  readonly phase: PipelinePhase;
  readonly block: PeriodicEval | null;
  readonly model: ModelOutline;
  readonly tokenizer: Tokenizer;
  /** The server that measures; null if this process does. */
  readonly served: ServedModel | null;
  /** The problems of `checkSources`. */
  readonly missing: readonly unknown[];
}

/** Returns errors of a phase's trainer with their places in the file. */
const trainerErrorsAt = (
  { config }: ParsedTraining,
  at: number,
  file: ConfigFile,
  errors: readonly unknown[],
): readonly unknown[] =>
  errors.map((error) => atPlace(file, error, phasePathOf(config.phases[at]!, at, config.config)));

async function checkPhase(
  parsed: ParsedTraining,
  at: number,
  { file, phase, block: built, model: bare, served, tokenizer, missing }: PhaseToCheck,
): Promise<void> {
  const { config, blockPath } = parsed;
  const isAdapted = (config.lora ?? config.adapter) !== undefined;
  const { trainingMemory, ...unestimated } = bare;
  const { lora } = config;
  const model: OutlinedLM = isAdapted
    ? {
        ...unestimated,
        base: bare,
        // The ranks of a saved adapter are in its own files; its trainer checks the memory.
        ...(lora &&
          isAccepted(() => bare.checkLora(lora)) && { trainingMemory: (pass) => trainingMemory(pass, lora) }),
      }
    : bare;
  const options = { model, tokenizer, config: config.config, runDir: config.run_dir };
  const trainerErrors: unknown[] = [];
  try {
    checkPipeline([phase], options);
    if (missing.length === 0) trainerErrors.push(...(await checkDatasets(phase, options)));
  } catch (error) {
    trainerErrors.push(error);
  }
  const requestErrors = await checkRequests({
    callbacks: built?.callbacks ?? [],
    ...built?.session,
    model: served === null ? inMemory(model as CausalLM, tokenizer) : { ...served, base: served },
  });
  throwAll([
    ...trainerErrorsAt(parsed, at, file, trainerErrors),
    ...requestErrors.map((error) => atPlace(file, error, (option) => [...blockPath, ...option])),
  ]);
}
