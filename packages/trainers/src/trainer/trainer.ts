import { join } from "@periodic-eval/store/platform";
import {
  withSession,
  type EvaluableModel,
  type PeriodicEval,
  type WindowPlace,
  type SessionOptions,
  type TrainerCallback,
} from "@periodic-eval/core";
import { checkPhaseName, parseOptions } from "@periodic-eval/contracts/options";
import { hashJson } from "@periodic-eval/core/random";
import { checkSessionOptions, logWarning } from "@periodic-eval/core/session";
import { checkWritable, writeWholeFolder } from "@periodic-eval/store";
import { inMemory, tfjsGuards, type TrainableLM } from "@periodic-eval/tfjs";
import type * as z from "zod";
import { holdsModelOf, phaseStartOf } from "../checkpoint/saved-tensors.ts";
import { summarizeBadRows, type BadRow, type RowsOf } from "../data/bad-row.ts";
import { checkSource } from "../data/read-rows.ts";
import type { PhaseResult } from "../loop/phase.ts";
import { runPhase } from "../loop/run-phase.ts";
import { checkMeasureOn, servedAdapter } from "../measuring/measure-on.ts";
import { buildPhase, planPhase } from "./plan-phase.ts";
import { checkConfig, checkParts, checkRestore, checkRunDir, checkTrainable } from "./checks.ts";
import { exactModelFacts, fingerprintModel } from "./model-identity.ts";
import { buildBlock, builtBlock, checkBlock, hasConditions, type BlockOption } from "./periodic-eval.ts";
import { interruption } from "./report-interrupt.ts";
import { checkTrainingMemory } from "./training-memory.ts";
import {
  objectsSchema,
  type TrainerOptions,
  type MethodRows,
  type TrainingMethod,
  type TrainingSettings,
} from "./trainer-options.ts";
import type { TrainingConfig } from "./training-config.ts";

export interface TrainResult extends PhaseResult {
  /** All rows that could not be trained on unchanged, left out or truncated, by file and line. */
  readonly badRows: readonly BadRow[];
  /** The folder `<runDir>/restored/<phase>` with the restored model, in Hugging Face's format; null if `isRestored` is false. */
  readonly restored: string | null;
}

/**
 * Base class of the trainers: a phase of optimizer steps inside a session. Every step is a function of model, data,
 * configuration and step number, so that an interrupted run resumes with the same bits, whatever callbacks measure in
 * between. A subclass supplies the data of the steps.
 */
export abstract class Trainer<C extends TrainingConfig = TrainingConfig> {
  readonly config: C;
  readonly #method: TrainingMethod<C>;
  readonly #options: TrainerOptions<C>;
  readonly #callbacks: TrainerCallback[];
  /** The parts of `periodicEval`; null until training begins, unless they are given. */
  #block: PeriodicEval | null;

  /**
   * Checks everything that needs no step, because a pipeline constructs its last trainer before it trains the first phase.
   *
   * @throws PeriodicEvalError `config` for an invalid option.
   */
  constructor(options: TrainerOptions<C>, method: TrainingMethod<C>) {
    this.config = method.config;
    this.#method = method;
    this.#options = options;
    this.#callbacks = [...(options.callbacks ?? [])];
    this.#block = builtBlock(options.periodicEval);
    checkConfig(method, options);
    checkMeasureOn(optionsOf(method), options);
    if (options.periodicEval !== undefined) checkBlock(this.#blockOption(), options.session);
    checkSessionOptions(this.#sessionOptions());
    checkRestore(method, this.#hasConditions());
  }

  /** @throws PeriodicEvalError `config` for an id that is not a valid file name, or that another callback has. */
  addCallback(callback: TrainerCallback): this {
    parseOptions(`${this.#method.name}Trainer.addCallback`, objectsSchema("callbacks"), [callback]);
    this.#callbacks.push(callback);
    checkSessionOptions(this.#sessionOptions());
    return this;
  }

  /** The live model as callbacks measure it. Every call reads the current weights. */
  get evaluableModel(): EvaluableModel {
    const { model, tokenizer } = this.#options;
    return inMemory(model, tokenizer);
  }

  /**
   * Returns a hash of the current model: every byte of its weights, its configuration and its adapter's. Null for a model
   * without `weights`.
   */
  async modelFingerprint(): Promise<string | null> {
    const facts = await fingerprintModel(this.#options.model);
    return facts && hashJson(facts);
  }

  /** Trains the phase to its end, from its newest checkpoint if there is one. */
  async train(): Promise<TrainResult> {
    const interrupted = this.#endsAtSignals ? interruption() : null;
    const options = { ...this.#options, ...(interrupted && { signal: interrupted.signal }) };
    const { model, after, resume = "auto", runDir, guards = [] } = options;
    checkTrainable(optionsOf(this.#method), model);
    await checkWritable(runDir);
    if (this.#options.periodicEval !== undefined) {
      this.#block = await buildBlock(this.#blockOption());
      checkSessionOptions(this.#sessionOptions());
    }
    const settings = this.#settings();
    const rows = await this.#read(settings, "dataset");
    const validationRows = this.#method.hasValidation ? await this.#read(settings, "validation") : null;
    // Before a reference of DPO runs, which may take minutes.
    const plan = planPhase(this.#method, rows, { model, phase: settings.phase });
    const where = `phase "${settings.phase}"`;
    const warning = checkTrainingMemory({ where, model, size: plan.size });
    if (warning !== null) settings.warn(where, warning);
    const data = await rows.prepare(settings);
    const validationData = await validationRows?.prepare(settings);
    const phase = buildPhase({
      plan,
      method: this.#method,
      options,
      settings,
      data,
      validationRows: validationData?.select([...Array(validationRows!.count).keys()]) ?? null,
      exactModel: await exactModelFacts(model),
      start: after && (await phaseStartOf(model, after)),
    });
    const { learner } = phase;
    const leave = this.config.activationCheckpointing ? model.enterActivationCheckpointing?.() : undefined;
    try {
      const resumed = await learner.resume(resume, phase);
      await data.keep?.();
      await validationData?.keep?.();
      const session = {
        ...this.#sessionOptions(),
        ...(options.signal && { signal: options.signal }),
        guards: [...tfjsGuards(model, learner.optimizer), ...guards],
        ...(isLoaded(model) && { trainedTexts: rows.texts }),
        ...(resumed && { resume: resumed.state.session }),
      };
      const { endProcess, ...result } = await this.#measuring(session, (measured) =>
        withSession(measured, async (session) => {
          interrupted?.listen();
          const ended = await runPhase({ phase, session, resumed });
          const restored = ended.isRestored ? await this.#saveRestored(ended.lastClean!.checkpoint) : null;
          return {
            ...ended,
            restored,
            endProcess: () => interrupted?.endProcess({ session, runDir, resume }),
          };
        }),
      );
      endProcess();
      return { ...result, badRows: [...rows.badRows, ...(validationRows?.badRows ?? [])] };
    } finally {
      interrupted?.stop();
      leave?.();
      learner.dispose();
    }
  }

  /** Trains in a session that measures in this process, or on the server of `measureOn`. */
  async #measuring<T>(session: SessionOptions, train: (session: SessionOptions) => Promise<T>): Promise<T> {
    const { measureOn, model, runDir } = this.#options;
    if (measureOn === undefined) return train(session);
    const served = servedAdapter(measureOn, { runDir, phase: this.#phaseName, model });
    try {
      return await train({ ...session, model: served.at });
    } finally {
      await served.dispose();
    }
  }

  get #savesAdapter(): boolean {
    return this.config.saveAdapterAtFiring || this.#block?.saveAdapterAtFiring === true;
  }

  /** Whether Ctrl-C and its like end training. A caller with loggers or a signal decides what is printed and when it ends. */
  get #endsAtSignals(): boolean {
    const { loggers, signal } = this.#options;
    return loggers === undefined && signal === undefined;
  }

  async #read({ phase, runDir, warn }: TrainingSettings, of: RowsOf): Promise<MethodRows> {
    const rows = await this.#method.read({ phase, runDir, isAhead: false }, of);
    for (const warning of rows.warnings) warn("dataset", warning);
    const summary = summarizeBadRows(rows, this.config.onBadRow);
    if (summary !== null) warn(of, summary);
    return rows;
  }

  #settings(): TrainingSettings {
    return {
      seed: this.#seed,
      phase: this.#phaseName,
      runDir: this.#options.runDir,
      warn: (where, message) => logWarning(this.#options.loggers ?? [], where, message),
    };
  }

  #hasConditions(): boolean {
    const { session, periodicEval } = this.#options;
    const stopWhen = session?.stopWhen;
    return stopWhen === undefined
      ? periodicEval !== undefined && hasConditions(this.#blockOption())
      : stopWhen.length > 0;
  }

  #blockOption(): BlockOption {
    return { where: optionsOf(this.#method), block: this.#options.periodicEval, phase: this.#phaseName };
  }

  /** Returns all session options except the guards, which need the optimizer, and the state to resume from. */
  #sessionOptions(): SessionOptions {
    const { runDir, loggers, signal, runStepOffset, session } = this.#options;
    return {
      ...this.#block?.session,
      ...session,
      ...(this.#savesAdapter && { saveAtFiring: (at) => this.#saveMeasured(at) }),
      run: runDir,
      phase: this.#phaseName,
      // runPhase begins the session itself, to handle what callbacks request before the first step.
      maxSteps: null,
      seed: this.#seed,
      model: this.evaluableModel,
      callbacks: [...(this.#block?.callbacks ?? []), ...this.#callbacks],
      ...(loggers && { loggers }),
      ...(signal && { signal }),
      ...(runStepOffset !== undefined && { runStepOffset }),
    };
  }

  /** Returns the folder relative to the run's folder, which may be moved. */
  async #saveMeasured({ phase, progress }: WindowPlace): Promise<string> {
    const { model, runDir } = this.#options;
    const path = join("saved", phase, `step_${progress.step}`);
    await writeWholeFolder(join(runDir, path), (draft) => model.save(draft));
    return path;
  }

  /** Writes the restored model, unless its files are there: they are those of the checkpoint. */
  async #saveRestored(checkpoint: string): Promise<string> {
    const { model, runDir } = this.#options;
    const path = join(runDir, "restored", this.#phaseName);
    if (!(await holdsModelOf(path, checkpoint))) await writeWholeFolder(path, (draft) => model.save(draft));
    return path;
  }

  get #phaseName(): string {
    return this.#options.phase ?? "train";
  }

  get #seed(): string {
    return String(this.config.seed);
  }
}

/** Whether a model, or the base of its adapter, was read from files: random weights are at chance rightly. */
const isLoaded = (model: TrainableLM & { readonly folder?: string | null }): boolean =>
  typeof model.folder === "string";

const optionsOf = ({ name }: { readonly name: string }): string => `${name}Trainer options`;

/**
 * Checks the options that all trainers share, before a subclass reads its own.
 *
 * @param name `SFT`, and `SFTTrainer` for the trainer.
 * @throws PeriodicEvalError `config`; `data` for a file of rows that does not exist.
 */
export function checkTrainerOptions(
  name: string,
  schema: z.ZodType,
  options: TrainerOptions & { readonly dataset: unknown; readonly validation?: unknown },
): void {
  const where = optionsOf({ name });
  parseOptions(where, schema, options);
  checkParts(where, options);
  checkRunDir(where, options.runDir);
  checkPhaseName(where, options.phase ?? "train", ["phase"]);
  checkSource(where, "dataset", options.dataset);
  if (options.validation !== undefined) checkSource(where, "validation", options.validation);
}
