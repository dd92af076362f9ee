import { join } from "node:path";
import {
  PeriodicEvalError,
  withSession,
  type EvaluableModel,
  type WindowPlace,
  type Guard,
  type Json,
  type Logger,
  type SessionOptions,
  type Tokenizer,
  type TrainerCallback,
} from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { checkSessionOptions, logWarning } from "@periodic-eval/core/session";
import { checkKeys, checkPhaseName, checkWord } from "@periodic-eval/core/internal";
import { inMemory, tfjsGuards, windowLength, type TrainableLM } from "@periodic-eval/core/tfjs";
import { checkpointsOf } from "../checkpoint/checkpoints.ts";
import type { PhaseStart } from "../checkpoint/trainer-state.ts";
import { writeWholeFolder } from "../checkpoint/whole-folder.ts";
import { describeBadRow, type BadRow } from "../data/bad-row.ts";
import type { RowsOf } from "../data/bad-rows-file.ts";
import { planData } from "../data/data-plan.ts";
import { sessionSettings, type Phase, type PhaseResult, type SessionSettings } from "../loop/phase.ts";
import { checkResume, resumePhase, type Resume } from "../loop/resume.ts";
import { runPhase } from "../loop/run-phase.ts";
import { evalName } from "../loop/validation.ts";
import { GradientNorm } from "../optimizer/clipping.ts";
import { AdamW } from "../optimizer/adamw.ts";
import { checkObjects, checkTrainable } from "./check-parts.ts";
import {
  exactOfModel,
  fingerprintModel,
  hashingOnce,
  type HashWeights,
  type ModelConfigs,
} from "./model-identity.ts";
import { phaseStartOf } from "./phase-start.ts";
import type { OutlinedLM } from "./outlined-lm.ts";
import type { TrainingData } from "./training-data.ts";
import { partRows } from "./part-rows.ts";
import { scheduleOf } from "./schedule.ts";
import { exactPart, phaseSteps, type TrainingConfig } from "./training-config.ts";

/** What every trainer is given; `C` is its configuration. */
export interface TrainerOptions<C extends TrainingConfig = TrainingConfig> {
  /**
   * Trained in place. A resume wants the same frozen weights, and the same `config` and `adapterConfig` of a model that
   * tells them, as those of `@periodic-eval/models` do.
   */
  readonly model: TrainableLM & ModelConfigs;
  readonly tokenizer: Tokenizer;
  /**
   * Snapshots go to `<runDir>/periodic_eval`, checkpoints to `<runDir>/checkpoints/<phase>`, the list of rows that cannot be
   * trained on as they are to `<runDir>/bad_rows/<phase>`.
   */
  readonly runDir: string;
  /** Default `train`. Matches `[A-Za-z0-9][\w.-]*`; unique within the run. */
  readonly phase?: string;
  readonly config?: Partial<C>;
  readonly callbacks?: readonly TrainerCallback[];
  /** Beside those of TensorFlow.js, which are always there. */
  readonly guards?: readonly Guard[];
  readonly loggers?: readonly Logger[];
  readonly signal?: AbortSignal;
  /** Default `auto`. */
  readonly resume?: Resume;
  /**
   * Phases of the run that the model was trained in before this one, in order. A resume wants the same ones, and the weights
   * as they left them. Left out, nothing is known of them or compared; `runPipeline` gives them.
   */
  readonly after?: readonly string[];
  /** Optimizer steps of earlier phases of the run; by default the largest `run_step` that their snapshots name. */
  readonly runStepOffset?: number;
  readonly session?: SessionSettings;
}

/** The options that every trainer has, for checks of their names. */
export const trainerOptionNames = [
  "model",
  "tokenizer",
  "runDir",
  "phase",
  "config",
  "callbacks",
  "guards",
  "loggers",
  "signal",
  "resume",
  "after",
  "runStepOffset",
  "session",
] as const satisfies readonly (keyof TrainerOptions)[];

export interface TrainResult extends PhaseResult {
  /** Rows that could not be trained on as they are, left out or cut, by file and line; all of them. */
  readonly badRows: readonly BadRow[];
}

/** How a method of training differs from the others. */
export interface TrainingMethod<C extends TrainingConfig> {
  /** How errors call it: `SFT`, and the trainer `SFTTrainer`. */
  readonly name: string;
  /** With its defaults, checked. */
  readonly config: C;
  /** Names of what it finds on held-out rows, without prefix: `loss`, `perplexity`. */
  readonly heldOutMetrics: readonly string[];
  /** Reads and renders the rows. The model stands at the start of the phase, whatever it is resumed to later. */
  prepare(settings: TrainingSettings): Promise<TrainingData>;
  /** Likewise, of the rows to validate on; left out where none were given. */
  prepareValidation?(settings: TrainingSettings): Promise<TrainingData>;
}

export interface TrainingSettings {
  /** In tokens, at most the model's context. */
  readonly maxLength: number;
  /** Of everything random of the phase. */
  readonly seed: string;
  readonly phase: string;
  /** Of what stands still while the phase is prepared. */
  readonly hashWeights: HashWeights;
  warn(where: string, message: string): void;
}

/**
 * What all trainers are: a phase of optimizer steps inside a session. Everything is a function of model, data,
 * configuration and step, so that a killed run resumes to the same bits; what callbacks measure in between changes none.
 * A subclass says what a step learns from.
 */
export abstract class Trainer<C extends TrainingConfig = TrainingConfig> {
  readonly config: C;
  readonly #method: TrainingMethod<C>;
  readonly #options: TrainerOptions<C>;
  readonly #callbacks: TrainerCallback[];

  /**
   * Everything is checked that needs no step: a pipeline constructs its last phase before it trains the first.
   *
   * @throws PeriodicEvalError `config` for an option that is out of range.
   */
  constructor(options: TrainerOptions<C>, method: TrainingMethod<C>) {
    const trainer = `${method.name}Trainer`;
    checkPhaseName(`${trainer} phase`, options.phase ?? "train");
    checkResume(`${trainer} resume`, options.resume);
    checkKeys(`${trainer} session`, options.session ?? {}, sessionSettings);
    this.config = method.config;
    this.#method = method;
    this.#options = options;
    this.#callbacks = [...(options.callbacks ?? [])];
    this.#checkMaxLength();
    this.#checkCheckpointing();
    this.#checkSaving();
    this.#checkValidation();
    this.#checkSchedule();
    checkSessionOptions(this.#sessionOptions());
  }

  /** Throws a `config` error for an id that cannot name a file, or that another callback has. */
  addCallback(callback: TrainerCallback): this {
    checkObjects(`${this.#method.name}Trainer addCallback`, [callback]);
    this.#callbacks.push(callback);
    checkSessionOptions(this.#sessionOptions());
    return this;
  }

  /** The live model as callbacks measure it: each call sees the weights as they then are. */
  get evaluableModel(): EvaluableModel {
    const { model, tokenizer } = this.#options;
    return inMemory(model, tokenizer);
  }

  /**
   * Hash of what the model is now: every byte of its weights, the configuration, the adapter's. Null for a model that does
   * not tell its weights.
   */
  async modelFingerprint(): Promise<string | null> {
    const facts = await fingerprintModel(this.#options.model);
    return facts && hashJson(facts);
  }

  /** Trains the phase to its end, from its newest checkpoint where there is one. */
  async train(): Promise<TrainResult> {
    checkTrainable(`${this.#method.name}Trainer`, this.#options.model);
    const settings: TrainingSettings = {
      maxLength: this.#maxLength,
      seed: this.#seed,
      phase: this.#phaseName,
      hashWeights: hashingOnce(),
      warn: (where, message) => this.#warn(where, message),
    };
    const data = await this.#method.prepare(settings);
    this.#tellBadRows("dataset", data);
    const given = (await this.#method.prepareValidation?.(settings)) ?? null;
    if (given !== null) this.#tellBadRows("validation", given);
    const { model, after } = this.#options;
    const phase = this.#phase(data, given, {
      exactModel: await exactOfModel(model, settings.hashWeights),
      start: after && (await phaseStartOf(model, after)),
    });
    const leave = this.config.activationCheckpointing ? model.enterActivationCheckpointing?.() : undefined;
    try {
      const resumed = await resumePhase(phase, this.#options.resume ?? "auto");
      await data.keep?.();
      await given?.keep?.();
      const result = await withSession(
        {
          ...this.#sessionOptions(),
          guards: [...tfjsGuards(model, phase.optimizer), ...(this.#options.guards ?? [])],
          ...(resumed && { resume: resumed.state.session }),
        },
        (session) => runPhase({ phase, session, resumed }),
      );
      return { ...result, badRows: [...data.badRows, ...(given?.badRows ?? [])] };
    } finally {
      leave?.();
      phase.optimizer.dispose();
      phase.gradientNorm.dispose();
    }
  }

  /** All but the guards, which want the optimizer, and what the session goes on from. */
  #sessionOptions(): SessionOptions {
    const { runDir, loggers = [], signal, runStepOffset } = this.#options;
    return {
      ...this.#options.session,
      ...(this.config.saveAdapterAtFiring && { saveAtFiring: (at) => this.#saveMeasured(at) }),
      run: runDir,
      phase: this.#phaseName,
      // runPhase begins the session: what callbacks ask for before the first step is answered to it.
      maxSteps: null,
      seed: this.#seed,
      model: this.evaluableModel,
      callbacks: this.#callbacks,
      loggers,
      ...(signal && { signal }),
      ...(runStepOffset !== undefined && { runStepOffset }),
    };
  }

  get #phaseName(): string {
    return this.#options.phase ?? "train";
  }

  get #seed(): string {
    return String(this.config.seed);
  }

  /** The model as checks may look at it: a pipeline is also checked where none is loaded. */
  get #outline(): OutlinedLM {
    return this.#options.model;
  }

  get #maxLength(): number {
    return this.config.maxLength ?? windowLength(this.#outline);
  }

  #checkMaxLength(): void {
    const longest = windowLength(this.#outline);
    if (this.#maxLength <= longest) return;
    throw new PeriodicEvalError({
      code: "config",
      where: `${this.#method.name} config maxLength`,
      got: String(this.#maxLength),
      expected: `at most ${longest}, the model's context`,
      fix: "Lower it, or leave it out.",
    });
  }

  #checkCheckpointing(): void {
    const isAble = this.#outline.enterActivationCheckpointing !== undefined;
    if (!this.config.activationCheckpointing || isAble) return;
    throw new PeriodicEvalError({
      code: "config",
      where: `${this.#method.name} config activationCheckpointing`,
      got: "true, for a model that keeps all activations",
      expected: "a model with enterActivationCheckpointing",
      fix: "Leave it out, or lower batchSize and raise gradientAccumulation.",
    });
  }

  /** The folder, relative to that of the run, which may be moved. */
  async #saveMeasured({ phase, progress }: WindowPlace): Promise<string> {
    const { model, runDir } = this.#options;
    const path = join("saved", phase, `step_${progress.step}`);
    await writeWholeFolder(join(runDir, path), (draft) => model.save(draft));
    return path;
  }

  #checkSaving(): void {
    if (!this.config.saveAdapterAtFiring || this.#options.session?.saveAtFiring === undefined) return;
    throw new PeriodicEvalError({
      code: "config",
      where: `${this.#method.name} config saveAdapterAtFiring`,
      got: "true beside the session's saveAtFiring",
      expected: "one of the two",
      fix: "Leave one of them out.",
    });
  }

  #checkValidation(): void {
    const { evalSteps, keepBest, validationShare } = this.config;
    const { heldOutMetrics, name } = this.#method;
    const isGiven = this.#method.prepareValidation !== undefined;
    if (isGiven && validationShare !== null) {
      throw new PeriodicEvalError({
        code: "config",
        where: `${this.#method.name} config validationShare`,
        got: `${validationShare} beside validation rows`,
        expected: "one of the two",
        fix: "Leave one of them out.",
      });
    }
    if (isGiven || validationShare !== null) {
      if (keepBest !== null) checkWord(`${name} config keepBest`, keepBest, heldOutMetrics.map(evalName));
      return;
    }
    if (evalSteps === null) return;
    throw new PeriodicEvalError({
      code: "config",
      where: `${this.#method.name} config evalSteps`,
      got: `${evalSteps} and nothing to validate on`,
      expected: "rows to validate on",
      fix: "Give validation, or validationShare: 0.1; or leave evalSteps out.",
    });
  }

  /** Where `epochs` tell the length, once the rows are counted. */
  #checkSchedule(): void {
    const { maxSteps } = this.config;
    if (maxSteps !== null) scheduleOf(`${this.#method.name} config`, this.config, maxSteps);
  }

  #tellBadRows(where: RowsOf, { badRows, badRowsListed, rowsRead }: TrainingData): void {
    if (badRows.length === 0) return;
    const shown = badRows.slice(0, 5).map(describeBadRow).join("; ");
    const more = badRows.length > 5 ? "; …" : ".";
    const how = this.config.onBadRow === "truncate" ? "as they are" : "and are left out";
    const listed = badRowsListed === null ? "" : ` ${badRowsListed}`;
    this.#warn(
      where,
      `${badRows.length} of ${rowsRead} rows cannot be trained on ${how}: ${shown}${more}${listed}`,
    );
  }

  #phase(
    data: TrainingData,
    given: TrainingData | null,
    { exactModel, start }: { exactModel: Readonly<Record<string, Json>>; start: PhaseStart | undefined },
  ): Phase {
    const { config } = this;
    const name = `${this.#method.name} config`;
    const { model, tokenizer, runDir, signal } = this.#options;
    const { batchSize, gradientAccumulation } = config;
    const stream = { seed: this.#seed, phase: this.#phaseName };
    const { training, validation } = partRows(config, stream, data, given);
    const plan = planData(training.lengths, { batchSize, gradientAccumulation, ...stream });
    const maxSteps = phaseSteps(config, plan.stepsPerEpoch);
    const logWarning = (where: string, message: string) => this.#warn(where, message);
    // It may throw, and the optimizer's tensors would have no owner yet.
    const learningRate = scheduleOf(name, config, maxSteps);
    return {
      name: this.#phaseName,
      maxSteps,
      stepsPerEpoch: plan.stepsPerEpoch,
      model,
      config,
      signal: signal ?? null,
      clock: this.#options.session?.clock ?? (() => performance.now() / 1000),
      warn: logWarning,
      optimizer: new AdamW(model.trainables(), {
        betas: config.adamBetas,
        epsilon: config.adamEpsilon,
        weightDecay: config.weightDecay,
        decay: config.decay,
      }),
      gradientNorm: new GradientNorm(),
      learningRate,
      validation,
      start,
      checkpoints: checkpointsOf({
        runDir,
        phase: this.#phaseName,
        keep: config.keepCheckpoints,
        warn: logWarning,
      }),
      exact: (step) => ({
        ...exactPart(config, maxSteps, step),
        data: data.hash,
        ...data.exact,
        tokenizer: tokenizer.fingerprint,
        ...exactModel,
      }),
      work: (step) => training.work(plan.microBatches(step), step),
    };
  }

  #warn(where: string, message: string): void {
    logWarning(this.#options.loggers ?? [], where, message);
  }
}
