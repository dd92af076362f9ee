import type { Logger, Tokenizer, PeriodicEval } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/data/config";
import { checkRequests } from "@periodic-eval/core/session";
import { outlineCausalLM, useBackend, type CausalLMOutline } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import type { ServedModel } from "@periodic-eval/remote";
import { checkWritable } from "@periodic-eval/store";
import { inMemory, type CausalLM } from "@periodic-eval/tfjs";
import { checkOrder, phaseErrors, type OutlinedLM, type PipelinePhase } from "@periodic-eval/trainers";
import { atPlace, awaitAll, throwAll, withOptionPlace, withPlace } from "../../config/config-file.ts";
import { buildBlock, loadTasks, type LoadTasks } from "../../config/open-grader.ts";
import { openLoggers, openNotify } from "../../config/open-loggers.ts";
import { connectServer } from "../../config/open-model.ts";
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
  const { model: source, tokenizer: tokenizerSource = source, run_dir: runDir, resume, backend } = config;
  await withPlace(file, ["run_dir"], () => checkWritable(runDir));
  return showLoading(terminal, async ({ onDownload }) => {
    const tokenizer = withPlace(file, [tokenizerSource === source ? "model" : "tokenizer"], () =>
      loadTokenizer(tokenizerSource, { onDownload }),
    );
    const openOutline = async () => withPlace(file, ["model"], () => outlineCausalLM(source, { onDownload }));
    // One after the other, because both may download into the same folder.
    const outline = tokenizer.then(openOutline, openOutline);
    const engine =
      backend === undefined ? useBackend() : withPlace(file, ["backend"], () => useBackend({ backend }));
    const server = tokenizer.then((loaded) => openServer(config, file, loaded));
    const adapter = outline.then((model) => checkAdapter(config, file, model));
    const checked = awaitAll([outline, tokenizer, server, isDone(adapter), isDone(engine)]).then(
      ([model, loaded, served, isAdapterRight]): CheckedParts => ({
        model: trainedOutline(model, config, isAdapterRight),
        tokenizer: loaded,
        served,
      }),
      () => null,
    );
    const prepared = awaitAll(config.phases.map((_, at) => preparePhase(parsed, at, tasks, checked)));
    const openingNotify = prepared.then(
      ([first]) => {
        const { notify } = (first!.periodicEval ?? {}) as Partial<PeriodicEval>;
        return openNotify(notify, runDir, { file, at: parsed.blockPath });
      },
      () => [],
    );
    const [, loadedTokenizer, , , phases, loggers, notifying, opened] = await awaitAll([
      awaitAll(errors.map((error) => Promise.reject(error))),
      tokenizer,
      outline,
      adapter,
      prepared,
      openLoggers(file, config.loggers, runDir),
      openingNotify,
      server,
      withPlace(file, ["phases"], () => checkOrder(config.phases, { runDir, resume })),
      engine,
    ]);
    return { tokenizer: loadedTokenizer, phases, loggers: [...loggers, ...notifying], server: opened };
  });
}

/** The block in place of one with an error, for the other checks of its phase. */
const nothing: PeriodicEval = { callbacks: [], session: {}, saveAdapterAtFiring: false };

const isDone = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  );

const openServer = ({ engine, model }: TrainConfig, file: ConfigFile, tokenizer: Tokenizer) =>
  engine === undefined
    ? null
    : withPlace(file, ["engine"], async () => (await connectServer(engine, model, tokenizer)).served);

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

/** Returns the model that is trained, with the adapter of the file. */
function trainedOutline(bare: CausalLMOutline, { lora, adapter }: TrainConfig, isRight: boolean): OutlinedLM {
  if ((lora ?? adapter) === undefined) return bare;
  const { trainingMemory, ...unestimated } = bare;
  // The ranks of a saved adapter are in its own files; its trainer checks the memory.
  const isEstimated = lora !== undefined && isRight;
  return {
    ...unestimated,
    base: bare,
    ...(isEstimated && { trainingMemory: (pass) => trainingMemory(pass, lora) }),
  };
}

interface CheckedParts {
  readonly model: OutlinedLM;
  readonly tokenizer: Tokenizer;
  /** The server that measures; null if this process does. */
  readonly served: ServedModel | null;
}

/**
 * Builds a phase and checks it.
 *
 * @param parts Null if one of them cannot be had, which is reported elsewhere; only the phase's files are checked then.
 */
async function preparePhase(
  { file, config, blockPath }: ParsedTraining,
  at: number,
  tasks: LoadTasks,
  parts: Promise<CheckedParts | null>,
): Promise<PipelinePhase> {
  const { run_dir: runDir, phases, periodic_eval: block } = config;
  const { phase: name } = phases[at]!;
  const names = phases.map(({ phase }) => phase);
  const errors: unknown[] = [];
  // A wrong block does not keep the phase's other errors from being reported.
  const built =
    block === undefined
      ? null
      : await withOptionPlace(file, blockPath, () =>
          buildBlock(block, tasks, { phase: name, phases: names, runDir }),
        ).catch((error: unknown) => (errors.push(error), nothing));
  const phase = pipelinePhase(config, at, built);
  const checked = await parts;
  const ofTrainer = await phaseErrors(phase, checked, { config: config.config, runDir });
  errors.push(...ofTrainer.map((error) => atPlace(file, error, phasePathOf(phases[at]!, at, config.config))));
  if (checked !== null) {
    const { model, tokenizer, served } = checked;
    const measured = served === null ? inMemory(model as CausalLM, tokenizer) : { ...served, base: served };
    const { callbacks = [], session } = built ?? {};
    const ofRequests = await checkRequests({ callbacks, ...session, model: measured });
    errors.push(...ofRequests.map((error) => atPlace(file, error, (option) => [...blockPath, ...option])));
  }
  throwAll(errors);
  return phase;
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
