import { join } from "node:path";
import {
  checkKeys,
  checkPhaseName,
  checkSessionOptions,
  namedStream,
  PeriodicEvalError,
  seedOf,
  warn,
  withSession,
  type FiringPlace,
  type Guard,
  type Logger,
  type SessionOptions,
  type Tokenizer,
  type TrainerCallback,
} from "@periodic-eval/core";
import { inMemory, tfjsGuards, type TrainableLM } from "@periodic-eval/core/tfjs";
import { checkpointsOf } from "../checkpoint/checkpoints.ts";
import { writeWholeFolder } from "../checkpoint/whole-folder.ts";
import { collate } from "../data/collate.ts";
import { checkSource, type BadRow, type ConversationSource } from "../data/conversations.ts";
import { planData } from "../data/data-plan.ts";
import { describeBadRow, loadDataset, type Dataset } from "../data/dataset.ts";
import { sessionSettings, type Phase, type SessionSettings, type TrainResult } from "../loop/phase.ts";
import { checkResume, resumePhase, type Resume } from "../loop/resume.ts";
import { runPhase } from "../loop/run-phase.ts";
import { AdamW } from "../optimizer/adamw.ts";
import { learningRates } from "../optimizer/learning-rate.ts";
import { accumulateGradients } from "./gradients.ts";
import { exactPart, parseSFTConfig, type SFTConfig } from "./sft-config.ts";

export interface SFTTrainerOptions {
  /** Trained in place. */
  readonly model: TrainableLM;
  readonly tokenizer: Tokenizer;
  /** Conversations: a JSON Lines file, or the rows. */
  readonly dataset: ConversationSource;
  /** Snapshots go to `<runDir>/periodic_eval`, checkpoints to `<runDir>/checkpoints/<phase>`. */
  readonly runDir: string;
  /** Default `train`. Matches `[A-Za-z0-9][\w.-]*`; unique within the run. */
  readonly phase?: string;
  readonly config?: Partial<SFTConfig>;
  readonly callbacks?: readonly TrainerCallback[];
  /** Beside those of TensorFlow.js, which are always there. */
  readonly guards?: readonly Guard[];
  readonly loggers?: readonly Logger[];
  readonly signal?: AbortSignal;
  /** Default `auto`. */
  readonly resume?: Resume;
  /** Optimizer steps of earlier phases of the run; by default the largest `run_step` that their snapshots name. */
  readonly runStepOffset?: number;
  readonly session?: SessionSettings;
}

const known = {
  model: true,
  tokenizer: true,
  dataset: true,
  runDir: true,
  phase: true,
  config: true,
  callbacks: true,
  guards: true,
  loggers: true,
  signal: true,
  resume: true,
  runStepOffset: true,
  session: true,
} as const satisfies Record<keyof SFTTrainerOptions, true>;

export interface SFTResult extends TrainResult {
  /** Rows that could not be trained on as they are, left out or cut, by file and line. */
  readonly badRows: readonly BadRow[];
}

/**
 * Supervised fine-tuning on conversations, the loss on assistant tokens only: Σ token NLL / Σ scored tokens over the
 * whole optimizer step. Everything is a function of model, data, configuration and step, so that a killed run resumes
 * to the same bits; what callbacks measure in between changes none.
 */
export class SFTTrainer {
  readonly config: SFTConfig;
  readonly #options: SFTTrainerOptions;
  readonly #callbacks: TrainerCallback[];

  /**
   * Everything is checked that needs no step: a pipeline constructs its last phase before it trains the first.
   *
   * @throws PeriodicEvalError `config` for an option that is unknown or out of range; `data` for a dataset's file that is
   *   not there.
   */
  constructor(options: SFTTrainerOptions) {
    checkKeys("SFTTrainer", options, Object.keys(known));
    checkPhaseName("SFTTrainer phase", options.phase ?? "train");
    checkResume("SFTTrainer resume", options.resume);
    checkKeys("SFTTrainer session", options.session ?? {}, sessionSettings);
    checkSource("SFTTrainer dataset", options.dataset);
    this.config = parseSFTConfig(options.config);
    this.#options = options;
    this.#callbacks = [...(options.callbacks ?? [])];
    this.#checkMaxLength();
    this.#checkSaving();
    checkSessionOptions(this.#sessionOptions());
  }

  /** Throws a `config` error for an id that cannot name a file, or that another callback has. */
  addCallback(callback: TrainerCallback): this {
    this.#callbacks.push(callback);
    checkSessionOptions(this.#sessionOptions());
    return this;
  }

  /** Trains the phase to its end, from its newest checkpoint where there is one. */
  async train(): Promise<SFTResult> {
    const dataset = await this.#loadDataset();
    const phase = this.#phase(dataset);
    try {
      const resumed = await resumePhase(phase, this.#options.resume ?? "auto");
      const result = await withSession(
        {
          ...this.#sessionOptions(),
          guards: [...tfjsGuards(this.#options.model, phase.optimizer), ...(this.#options.guards ?? [])],
          ...(resumed && { resume: resumed.state.session }),
        },
        (opened) => runPhase({ phase, session: opened, resumed }),
      );
      return { ...result, badRows: dataset.badRows };
    } finally {
      phase.optimizer.dispose();
    }
  }

  /** All but the guards, which want the optimizer, and what the session goes on from. */
  #sessionOptions(): SessionOptions {
    const { model, tokenizer, runDir, phase = "train", loggers = [], signal, runStepOffset } = this.#options;
    return {
      ...this.#options.session,
      ...(this.config.saveAdapterAtFiring && { saveAtFiring: (at) => this.#saveMeasured(at) }),
      run: runDir,
      phase,
      // runPhase begins the session: what callbacks ask for before the first step is answered to it.
      maxSteps: null,
      seed: String(this.config.seed),
      model: inMemory(model, tokenizer),
      callbacks: this.#callbacks,
      loggers,
      ...(signal && { signal }),
      ...(runStepOffset !== undefined && { runStepOffset }),
    };
  }

  get #maxLength(): number {
    return this.config.maxLength ?? this.#options.model.contextLength;
  }

  #checkMaxLength(): void {
    const { contextLength } = this.#options.model;
    if (this.#maxLength <= contextLength) return;
    throw new PeriodicEvalError({
      code: "config",
      where: "SFT config maxLength",
      got: String(this.#maxLength),
      expected: `at most ${contextLength}, the model's context`,
      fix: "Lower it, or leave it out.",
    });
  }

  /** The folder, relative to that of the run, which may be moved. */
  async #saveMeasured({ phase, progress }: FiringPlace): Promise<string> {
    const { model, runDir } = this.#options;
    const path = join("saved", phase, `step_${progress.step}`);
    await writeWholeFolder(join(runDir, path), (draft) => model.save(draft));
    return path;
  }

  #checkSaving(): void {
    if (!this.config.saveAdapterAtFiring || this.#options.session?.saveAtFiring === undefined) return;
    throw new PeriodicEvalError({
      code: "config",
      where: "SFT config saveAdapterAtFiring",
      got: "true beside the session's saveAtFiring",
      expected: "one of the two",
      fix: "Leave one of them out.",
    });
  }

  async #loadDataset(): Promise<Dataset> {
    const { dataset: source, tokenizer } = this.#options;
    const { onBadRow } = this.config;
    const dataset = await loadDataset(source, tokenizer, { maxLength: this.#maxLength, onBadRow });
    if (dataset.badRows.length > 0) {
      const shown = dataset.badRows.slice(0, 5).map(describeBadRow).join("; ");
      const more = dataset.badRows.length > 5 ? "; …" : "";
      const how = onBadRow === "truncate" ? "as they are" : "and are left out";
      this.#warn(
        "dataset",
        `${dataset.badRows.length} of ${dataset.rowsRead} rows cannot be trained on ${how}: ${shown}${more}`,
      );
    }
    return dataset;
  }

  #phase(dataset: Dataset): Phase {
    const { config } = this;
    const { model, tokenizer, runDir, phase: name = "train", signal } = this.#options;
    const { batchSize, gradientAccumulation } = config;
    const seed = String(config.seed);
    const lengths = dataset.rows.map(({ ids }) => ids.length);
    const data = planData(lengths, { batchSize, gradientAccumulation, seed, phase: name });
    const maxSteps = config.maxSteps ?? Math.ceil((config.epochs ?? 1) * data.stepsPerEpoch);
    const warmupSteps = config.warmupSteps ?? Math.ceil((config.warmupRatio ?? 0) * maxSteps);
    const warn = (where: string, message: string) => this.#warn(where, message);
    return {
      name,
      maxSteps,
      stepsPerEpoch: data.stepsPerEpoch,
      model,
      config,
      signal: signal ?? null,
      warn,
      optimizer: new AdamW(model.trainables(), {
        betas: config.adamBetas,
        epsilon: config.adamEpsilon,
        weightDecay: config.weightDecay,
        decay: config.decay,
      }),
      learningRate: learningRates[config.schedule]({ peak: config.learningRate, maxSteps, warmupSteps }),
      checkpoints: checkpointsOf({ runDir, phase: name, keep: config.keepCheckpoints, warn }),
      exact: { ...exactPart(config, maxSteps), data: dataset.hash, tokenizer: tokenizer.fingerprint },
      work(step) {
        const rows = data.microBatches(step).map((numbers) => numbers.map((number) => dataset.rows[number]!));
        const batches = rows.map((each) => collate(each, model.fixedLength));
        return {
          scored: total(batches.map(({ targets }) => targets.length)),
          tokens: total(batches.map(({ tokens }) => tokens)),
          where: rows.flat().map(({ where }) => where),
          gradients: () =>
            accumulateGradients(
              model,
              batches,
              (microBatch) => (place) => namedStream(seedOf(seed, name, step, microBatch, place)),
            ),
        };
      },
    };
  }

  #warn(where: string, message: string): void {
    warn(this.#options.loggers ?? [], where, message);
  }
}

const total = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
