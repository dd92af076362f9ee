import * as tf from "@tensorflow/tfjs-core";
import {
  PeriodicEvalError,
  type EvaluableModel,
  type Guard,
  type Json,
  type Logger,
  type SessionState,
  type Tokenizer,
} from "@periodic-eval/core";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import { logWarning } from "@periodic-eval/core/session";
import { checkKeys, checkPhaseName, isCount, quoteValue } from "@periodic-eval/core/internal";
import { inMemory, tfjsGuards, windowLength, type TrainableLM } from "@periodic-eval/core/tfjs";
import { checkpointsOf, type Checkpoint, type Checkpoints } from "../checkpoint/checkpoints.ts";
import { writeTraining } from "../checkpoint/training-state.ts";
import { collate } from "../data/collate.ts";
import { accumulate } from "../loop/accumulate.ts";
import { checkResume, resumePhase, type Resume } from "../loop/resume.ts";
import { update } from "../loop/update.ts";
import { AdamW } from "../optimizer/adamw.ts";
import { GradientNorm } from "../optimizer/clipping.ts";
import { checkPartsInMemory, checkRunDir, checkTrainable } from "../trainer/check-parts.ts";
import { exactOfModel, type ModelConfigs } from "../trainer/model-identity.ts";
import { readAnswer, readExample, type SDPOExample } from "./example.ts";
import { passGradients, type SDPOPass } from "./gradients.ts";
import { passesOf, type TaughtPass } from "./passes.ts";
import { checkBase, parseSDPOConfig, type SDPOConfig } from "./sdpo-config.ts";
import { drawnLogProbs } from "./teacher.ts";

export interface SDPOTrainerOptions {
  /** Trained in place: an adapter for `teacher: "base"`, or any other model for `"current"`. */
  readonly model: TrainableLM & ModelConfigs;
  readonly tokenizer: Tokenizer;
  readonly config?: Partial<SDPOConfig>;
  /** Checkpoints go to `<runDir>/checkpoints/<phase>/step_<updates>`; wanted by `save` and `resume` alone. */
  readonly runDir?: string;
  /** Default `sdpo`. */
  readonly phase?: string;
  /** Are told what `resume` passes over. */
  readonly loggers?: readonly Logger[];
}

/** Of one gradient step, before its update; means over all tokens of the batch's responses. */
export interface SDPOMetrics {
  readonly loss: number;
  /** Of the mean loss's gradients, before clipping. */
  readonly grad_norm: number;
  /** The divergence between student and teacher, times the ratio. */
  readonly distill_loss: number;
  /** The estimate of the KL to the base, in nats, before its weight; null for a model without a base. */
  readonly kl_reg: number | null;
  /** As it was used: at most `isClip`. */
  readonly mean_is_ratio: number;
  /** Share of the tokens whose ratio was above `isClip`. */
  readonly clip_fraction: number;
  /** log p of the drawn tokens, in nats. */
  readonly student_log_prob: number;
  readonly teacher_log_prob: number;
}

export interface SDPOUpdate {
  /** Completed updates, this one included. */
  readonly update: number;
  /** Tokens of the responses. */
  readonly tokens: number;
  /** Of each gradient step, in order. */
  readonly steps: readonly SDPOMetrics[];
  /** Of the last one. */
  readonly metrics: SDPOMetrics;
}

export interface SDPOSaveOptions {
  /** As `Session.save` gave it, where the updates are told to a session. */
  readonly session?: SessionState;
  /** Updates of the whole training; null (the default) where nobody knows. */
  readonly maxUpdates?: number | null;
  /** Comes back from `resume` in the checkpoint's state. */
  readonly note?: Json;
}

const optionNames = ["model", "tokenizer", "config", "runDir", "phase", "loggers"] as const;
const saveOptionNames = ["session", "maxUpdates", "note"] as const;

/**
 * Self-distillation policy optimization (Hübotter et al. 2026, arXiv 2601.20802), batch by batch: a model that has answered
 * and been told something of its answers learns to give the next token as it would have, had it been told before.
 * `docs/decisions/2026-11-22-sdpo.md` has the definition.
 *
 *     const trainer = new SDPOTrainer({ model: withLora(base), tokenizer });
 *     const { metrics } = await trainer.update([{ prompt, response, oldLogProbs, feedback }]);
 *
 * There is no loop here, and no session: who calls `update` opens one where callbacks are wanted (`withSession` with
 * `evaluableModel` and `guards`), one step of the session for each update. What is random depends on seed, phase and the
 * number of the update alone: training that goes on from a checkpoint ends in the same bits.
 */
export class SDPOTrainer {
  readonly config: SDPOConfig;
  readonly #options: SDPOTrainerOptions;
  readonly #phase: string;
  readonly #optimizer: AdamW;
  readonly #gradientNorm = new GradientNorm();
  #updates = 0;
  #loss: number | null = null;
  /** What is being done to the weights. */
  #doing: string | null = null;
  /** Whether the weights have learned a part of a batch. */
  #isHalfway = false;
  #exact: Promise<Readonly<Record<string, Json>>> | null = null;

  /**
   * @throws PeriodicEvalError `config` for an option that is unknown or out of range, or wants a base that is not there; for a
   *   model, a tokenizer or a runDir that is none.
   */
  constructor(options: SDPOTrainerOptions) {
    checkKeys("SDPOTrainer", options, optionNames);
    checkPartsInMemory("SDPOTrainer", options);
    checkTrainable("SDPOTrainer", options.model);
    if (options.runDir !== undefined) checkRunDir("SDPOTrainer runDir", options.runDir);
    this.#phase = options.phase ?? "sdpo";
    checkPhaseName("SDPOTrainer phase", this.#phase);
    this.#options = options;
    this.config = parseSDPOConfig(options.config);
    checkBase(this.config, options.model.base !== undefined);
    const { adamBetas, adamEpsilon, weightDecay, decay } = this.config;
    this.#optimizer = new AdamW(options.model.trainables(), {
      betas: adamBetas,
      epsilon: adamEpsilon,
      weightDecay,
      decay,
    });
  }

  /** Completed updates, those before a resume included. */
  get updates(): number {
    return this.#updates;
  }

  /** The live model as callbacks measure it: each call sees the weights as they then are. */
  get evaluableModel(): EvaluableModel {
    return inMemory(this.#options.model, this.#options.tokenizer);
  }

  /** For a session: what sees that measuring disturbs neither weights nor optimizer. */
  get guards(): Guard[] {
    return tfjsGuards(this.#options.model, this.#optimizer);
  }

  /**
   * log p of each response's tokens by the model as it is, in nats: what `oldLogProbs` are right after sampling.
   *
   * @throws PeriodicEvalError `data` for an answer that cannot be read; `config` while another call runs, and for weights that
   *   learned a part of a batch.
   */
  logProbs(answers: readonly Pick<SDPOExample, "prompt" | "response">[]): Promise<number[][]> {
    return this.#alone("logProbs", () => this.#logProbs(answers));
  }

  async #logProbs(answers: readonly Pick<SDPOExample, "prompt" | "response">[]): Promise<number[][]> {
    const { model } = this.#options;
    const found: number[][] = [];
    for (const [i, answer] of answers.entries()) {
      const read = readAnswer(answer, `SDPO answer ${i}`, this.#reading);
      found.push([...(await drawnLogProbs(model, collate([read], model.fixedLength)))]);
      await tf.nextFrame();
    }
    return found;
  }

  /**
   * `stepsPerBatch` gradient steps on a batch, each with a teacher read anew where it changes. Every example is looked at
   * before the first.
   *
   * @throws PeriodicEvalError `data` for an example that cannot be learned from, nothing then being changed; `model` for a
   *   loss or gradient of NaN or Inf, earlier gradient steps of the batch then being made: `update`, `save` and
   *   `logProbs` are refused (`config`) until `resume` has gone back to a checkpoint, as they are while another call runs.
   */
  update(batch: readonly SDPOExample[]): Promise<SDPOUpdate> {
    return this.#alone("update", () => this.#update(batch));
  }

  async #update(batch: readonly SDPOExample[]): Promise<SDPOUpdate> {
    if (batch.length === 0)
      throw new PeriodicEvalError({
        code: "data",
        where: "SDPOTrainer update",
        got: "no example",
        expected: "one or more",
        fix: "Leave out an update that has nothing to learn from.",
      });
    const examples = batch.map((example, i) => readExample(example, i, this.#reading));
    const passes = await passesOf(this.#options.model, examples, this.config);
    const steps: SDPOMetrics[] = [];
    for (let step = 0; step < this.config.stepsPerBatch; step += 1) {
      steps.push(await this.#gradientStep(passes, step));
      this.#isHalfway = true;
      // A turn of the event loop: synchronous backends would not let anything else be heard.
      await tf.nextFrame();
    }
    this.#isHalfway = false;
    this.#updates += 1;
    const metrics = steps.at(-1)!;
    this.#loss = metrics.loss;
    return { update: this.#updates, tokens: tokensOf(passes), steps, metrics };
  }

  /**
   * Writes a checkpoint of the updates so far, whole or not at all, and removes all but the newest `keepCheckpoints`.
   * Returns its folder: weights as Hugging Face has them, and `trainer_state.json`, whose `step` counts updates and
   * `optimizer_steps` gradient steps.
   *
   * @throws PeriodicEvalError `config` for an option that is unknown or out of range, or a trainer without runDir, nothing
   *   then being written.
   */
  save(options: SDPOSaveOptions = {}): Promise<string> {
    return this.#alone("save", () => this.#save(options));
  }

  async #save(options: SDPOSaveOptions): Promise<string> {
    checkKeys("SDPOTrainer save", options, saveOptionNames);
    const { session, maxUpdates = null, note } = options;
    if (maxUpdates !== null && !isCount(maxUpdates, 1))
      throw new PeriodicEvalError({
        code: "config",
        where: "SDPOTrainer save maxUpdates",
        got: quoteValue(maxUpdates),
        expected: "a whole number of 1 or more, or null",
        fix: "Leave it out where nobody knows the updates of the whole training.",
      });
    const { model } = this.#options;
    const step = this.#updates;
    const progress = { step, maxSteps: maxUpdates, epoch: 0, elapsedSeconds: 0, ended: false };
    const alone = { phase: this.#phase, progress, runStepOffset: 0, callbacks: {}, windowSeconds: 0 };
    return this.#checkpoints("save").save(
      {
        schema_version: 1,
        phase: this.#phase,
        step,
        max_steps: maxUpdates,
        epoch: 0,
        finished: step === maxUpdates,
        stop_reason: null,
        loss: this.#loss,
        best: null,
        skipped_updates: 0,
        skipped_in_a_row: 0,
        seed: this.config.seed,
        optimizer_steps: this.#optimizer.steps,
        exact: await this.#exactFacts(),
        session: session ?? alone,
        ...(note !== undefined && { note }),
      },
      (folder) => writeTraining(folder, model, this.#optimizer),
    );
  }

  /**
   * Goes on from the newest whole checkpoint, bit for bit; null where there is none. `never` sets aside those there are.
   *
   * @throws PeriodicEvalError `config` where it is of another configuration, model or tokenizer; `store` where all are torn.
   */
  resume(resume: Resume = "auto"): Promise<Checkpoint | null> {
    return this.#alone("resume", () => this.#resume(resume));
  }

  async #resume(resume: Resume): Promise<Checkpoint | null> {
    checkResume("SDPOTrainer resume", resume);
    const { model } = this.#options;
    const exact = await this.#exactFacts();
    const checkpoints = this.#checkpoints("resume");
    const found = await resumePhase(
      { checkpoints, model, optimizer: this.#optimizer, exact: () => exact },
      resume,
    );
    if (found === null) return null;
    this.#isHalfway = false;
    this.#updates = found.state.step;
    this.#loss = found.state.loss;
    return found;
  }

  /** The optimizer's tensors; the model is the caller's. */
  dispose(): void {
    this.#optimizer.dispose();
    this.#gradientNorm.dispose();
  }

  /** Two at once would mix their gradient steps, or write what is half of each; and what is half learned is no state to go on from. */
  async #alone<T>(what: "update" | "save" | "resume" | "logProbs", run: () => Promise<T>): Promise<T> {
    const refuse = (got: string, expected: string, fix: string) =>
      new PeriodicEvalError({ code: "config", where: `SDPOTrainer ${what}`, got, expected, fix });
    if (this.#doing !== null)
      throw refuse(`a call while ${this.#doing} runs`, "one after the other", "Await the first.");
    if (this.#isHalfway && what !== "resume")
      throw refuse("weights that learned a part of a batch before an error", "whole updates", `${wayBack}.`);
    this.#doing = what;
    try {
      return await run();
    } finally {
      this.#doing = null;
    }
  }

  get #reading() {
    const { tokenizer, model } = this.#options;
    const { vocabSize } = model;
    return { tokenizer, vocabSize, longest: windowLength(model), hindsight: this.config.hindsight };
  }

  async #gradientStep(passes: readonly TaughtPass[], step: number): Promise<SDPOMetrics> {
    const { model } = this.#options;
    const { seed, learningRate, maxGradNorm } = this.config;
    const taught: SDPOPass[] = [];
    for (const { teach, ...pass } of passes) taught.push({ ...pass, teacher: await teach() });
    const work = {
      divisor: tokensOf(passes),
      tokens: passes.reduce((sum, { batch }) => sum + batch.tokens, 0),
      where: [],
      gradients: () => {
        const restore = this.config.disableDropout ? model.enterEval?.() : undefined;
        try {
          return accumulate(
            taught.map((pass, i) => () => {
              const random = (place: string) =>
                namedStream(seedOf(String(seed), this.#phase, this.#updates, step, i, place));
              return passGradients(model, pass, { ...this.config, random });
            }),
          );
        } finally {
          restore?.();
        }
      },
    };
    const options = { learningRate, maxGradNorm, gradientNorm: this.#gradientNorm };
    const { loss, gradNorm, means, applied } = await update(work, this.#optimizer, options);
    if (!applied) throw this.#notFinite(step, loss, gradNorm);
    return {
      loss,
      grad_norm: gradNorm,
      kl_reg: null,
      ...(means as Omit<SDPOMetrics, "loss" | "grad_norm" | "kl_reg">),
    };
  }

  #notFinite(step: number, loss: number, gradNorm: number): PeriodicEvalError {
    return new PeriodicEvalError({
      code: "model",
      where: `phase ${this.#phase}, update ${this.#updates + 1}, gradient step ${step + 1}`,
      got: `a loss of ${loss} and a gradient norm of ${gradNorm}`,
      expected: "finite numbers",
      fix:
        (step === 0
          ? "Learn another batch: the weights are as they were before this one. "
          : `Learn another batch, but first undo what was learned of this one: ${wayBack}. `) +
        'A lower learningRate is a new training: a new model and trainer, with another runDir or resume("never").',
    });
  }

  #checkpoints(caller: string): Checkpoints {
    const { runDir, loggers = [] } = this.#options;
    if (runDir !== undefined) {
      const tell = (where: string, message: string) => logWarning(loggers, where, message);
      return checkpointsOf({ runDir, phase: this.#phase, keep: this.config.keepCheckpoints, warn: tell });
    }
    throw new PeriodicEvalError({
      code: "config",
      where: `SDPOTrainer ${caller}`,
      got: "a trainer without runDir",
      expected: "a folder for checkpoints",
      fix: "Give runDir to the trainer.",
    });
  }

  /** What must be the same for a resume to be exact; of the frozen weights, read once. */
  #exactFacts(): Promise<Readonly<Record<string, Json>>> {
    const { model, tokenizer } = this.#options;
    const { keepCheckpoints: _, ...lasting } = this.config;
    this.#exact ??= exactOfModel(model).then((ofModel) => ({
      ...lasting,
      tokenizer: tokenizer.fingerprint,
      ...ofModel,
    }));
    return this.#exact;
  }
}

/** From weights that learned a part of a batch. */
const wayBack =
  "resume() goes back to the last checkpoint; where there is none, open a new model and trainer";

const tokensOf = (passes: readonly Pick<SDPOPass, "batch">[]): number =>
  passes.reduce((sum, { batch }) => sum + batch.targets.length, 0);
