import { PeriodicEvalError, type EvaluableModel, type Guard, type Json } from "@periodic-eval/core";
import { checkPhaseName, configError, parseOptions } from "@periodic-eval/contracts/options";
import { nextTurn } from "@periodic-eval/core/model";
import { logWarning } from "@periodic-eval/core/session";
import { inMemory, tfjsGuards, windowLength } from "@periodic-eval/tfjs";
import * as z from "zod";
import type { Checkpoint } from "../checkpoint/checkpoints.ts";
import { collate } from "../data/collate.ts";
import { Learner, resumeModes, type Resume } from "../loop/learner.ts";
import { checkParts, checkRunDir, checkTrainable } from "../trainer/checks.ts";
import { exactModelFacts } from "../trainer/model-identity.ts";
import { readAnswer, readExample, type SDPOExample } from "./example.ts";
import { recoveryAdvice, responseTokens, takeGradientStep, passesOf, drawnLogProbs } from "./pass.ts";
import {
  checkBase,
  parseSDPOConfig,
  type SDPOConfig,
  sdpoOptionsSchema,
  sdpoSaveSchema,
  type SDPOMetrics,
  type SDPOSaveOptions,
  type SDPOTrainerOptions,
  type SDPOUpdate,
} from "./sdpo-config.ts";

/**
 * Self-distillation policy optimization (Hübotter et al. 2026, arXiv 2601.20802), batch by batch: the model learns to give
 * each token of its answer the probability that it has when the model has read the feedback on that answer.
 * `docs/decisions/feedback.md` has the definition.
 *
 *     const trainer = new SDPOTrainer({ model: withLora(base), tokenizer });
 *     const { metrics } = await trainer.update([{ prompt, response, oldLogProbs, feedback }]);
 *
 * The trainer has no loop and opens no session. For callbacks, the caller of `update` opens one (`withSession` with
 * `evaluableModel` and `guards`) and reports each update as a step. Everything random depends only on seed, phase and the
 * number of the update: training that resumes from a checkpoint ends with the same bits.
 */
export class SDPOTrainer {
  readonly config: SDPOConfig;
  readonly #options: SDPOTrainerOptions;
  readonly #phase: string;
  readonly #learner: Learner;
  #updates = 0;
  #loss: number | null = null;
  #running: Method | null = null;
  /** Whether the weights have learned only a part of a batch. */
  #isHalfway = false;
  #exact: Promise<Readonly<Record<string, Json>>> | null = null;

  /**
   * @throws PeriodicEvalError `config` for an unknown or invalid option, or an option that requires a base if the model has
   *   none.
   */
  constructor(options: SDPOTrainerOptions) {
    const where = "SDPOTrainer options";
    parseOptions(where, sdpoOptionsSchema, options);
    checkParts(where, options);
    checkTrainable(where, options.model);
    if (options.runDir !== undefined) checkRunDir(where, options.runDir);
    const { model, runDir, phase = "sdpo", loggers = [] } = options;
    checkPhaseName(where, phase, ["phase"]);
    this.#options = options;
    this.#phase = phase;
    this.config = parseSDPOConfig(options.config);
    checkBase(this.config, model.base !== undefined);
    const warn = (where: string, message: string) => logWarning(loggers, where, message);
    this.#learner = new Learner({ model, config: this.config, phase, runDir, warn });
  }

  /** Completed updates, those before a resume included. */
  get updates(): number {
    return this.#updates;
  }

  /** The live model as callbacks measure it. Every call reads the current weights. */
  get evaluableModel(): EvaluableModel {
    return inMemory(this.#options.model, this.#options.tokenizer);
  }

  /** Guards for a session: they detect if measuring changes weights or optimizer. */
  get guards(): Guard[] {
    return tfjsGuards(this.#options.model, this.#learner.optimizer);
  }

  /**
   * Returns log p of each response's tokens under the current model, in nats. Right after sampling, these are `oldLogProbs`.
   *
   * @throws PeriodicEvalError `data` for an answer that cannot be read; `config` while another call runs, or if the weights
   *   have learned only a part of a batch.
   */
  logProbs(answers: readonly Pick<SDPOExample, "prompt" | "response">[]): Promise<number[][]> {
    return this.#runAlone("logProbs", async () => {
      const { model } = this.#options;
      const logProbs: number[][] = [];
      for (const [i, answer] of answers.entries()) {
        const read = readAnswer(answer, `SDPO answer ${i}`, this.#reading);
        logProbs.push([...(await drawnLogProbs(model, collate([read], model.fixedLength)))]);
        await nextTurn();
      }
      return logProbs;
    });
  }

  /**
   * Takes `stepsPerBatch` gradient steps on a batch. A teacher that changes is read again before each step. All examples are
   * checked before the first step.
   *
   * @throws PeriodicEvalError `data` for an example that cannot be learned from, before anything changes; `model` for a loss
   *   or gradient of NaN or Inf. Earlier gradient steps of the batch remain then, and `update`, `save` and `logProbs` throw
   *   `config` until `resume` restores a checkpoint. They also throw `config` while another call runs.
   */
  update(batch: readonly SDPOExample[]): Promise<SDPOUpdate> {
    return this.#runAlone("update", async () => {
      if (batch.length === 0)
        throw new PeriodicEvalError({
          code: "data",
          where: "SDPOTrainer.update",
          got: "an empty batch",
          expected: "one example or more",
          fix: "Skip updates without examples.",
        });
      const examples = batch.map((example, i) => readExample(example, i, this.#reading));
      const passes = await passesOf(this.#options.model, examples, this.config);
      const steps: SDPOMetrics[] = [];
      for (let step = 0; step < this.config.stepsPerBatch; step += 1) {
        const position = { phase: this.#phase, updates: this.#updates, step };
        steps.push(await takeGradientStep(this.#learner, passes, this.config, position));
        this.#isHalfway = true;
        // Yields to the event loop, which synchronous backends would block.
        await nextTurn();
      }
      this.#isHalfway = false;
      this.#updates += 1;
      const metrics = steps.at(-1)!;
      this.#loss = metrics.loss;
      return { update: this.#updates, tokens: responseTokens(passes), steps, metrics };
    });
  }

  /**
   * Writes a checkpoint of the updates so far atomically, and removes all but the newest `keepCheckpoints`. Returns its
   * folder: the weights in Hugging Face's format, and `trainer_state.json`, whose `step` counts updates and
   * `optimizer_steps` gradient steps.
   *
   * @throws PeriodicEvalError `config` for an unknown or invalid option, or a trainer without `runDir`, before anything is
   *   written.
   */
  save(options: SDPOSaveOptions = {}): Promise<string> {
    return this.#runAlone("save", async () => {
      parseOptions("SDPOTrainer.save options", sdpoSaveSchema, options);
      const { session, maxUpdates = null, note } = options;
      const step = this.#updates;
      const progress = { step, maxSteps: maxUpdates, epoch: 0, elapsedSeconds: 0, ended: false };
      const alone = { phase: this.#phase, progress, runStepOffset: 0, callbacks: {}, windowSeconds: 0 };
      return this.#learner.save({
        step,
        max_steps: maxUpdates,
        epoch: 0,
        finished: step === maxUpdates,
        stop_reason: null,
        loss: this.#loss,
        best: null,
        clean_step: null,
        stop_condition: null,
        skipped_updates: 0,
        skipped_in_a_row: 0,
        exact: await this.#exactFacts(),
        session: session ?? alone,
        note,
      });
    });
  }

  /**
   * Restores the newest complete checkpoint bit for bit. Returns null if there is none. `never` moves existing checkpoints
   * away.
   *
   * @throws PeriodicEvalError `config` if its configuration, model or tokenizer differs; `store` if every checkpoint is
   *   damaged.
   */
  resume(resume: Resume = "auto"): Promise<Checkpoint | null> {
    return this.#runAlone("resume", async () => {
      parseOptions("SDPOTrainer.resume", z.enum(resumeModes), resume);
      const exact = await this.#exactFacts();
      const checkpoint = await this.#learner.resume(resume, { exact: () => exact });
      if (checkpoint === null) return null;
      this.#isHalfway = false;
      this.#updates = checkpoint.state.step;
      this.#loss = checkpoint.state.loss;
      return checkpoint;
    });
  }

  /** Disposes the optimizer's tensors. The model belongs to the caller. */
  dispose(): void {
    this.#learner.dispose();
  }

  /**
   * Runs one method at a time: two would mix their gradient steps, or save a mixture. After an error, weights that learned
   * only a part of a batch accept nothing but `resume`.
   */
  async #runAlone<T>(method: Method, run: () => Promise<T>): Promise<T> {
    const where = `SDPOTrainer.${method}`;
    if (this.#running !== null)
      throw configError({
        where,
        got: `a call while ${this.#running} runs`,
        expected: "one call at a time",
        fix: "Await the first call.",
      });
    if (this.#isHalfway && method !== "resume")
      throw configError({
        where,
        got: "weights that learned a part of a batch before an error",
        expected: "weights after a complete update",
        fix: `Undo the part: ${recoveryAdvice}.`,
      });
    this.#running = method;
    try {
      return await run();
    } finally {
      this.#running = null;
    }
  }

  get #reading() {
    const { tokenizer, model } = this.#options;
    const { vocabSize } = model;
    return { tokenizer, vocabSize, longest: windowLength(model), hindsight: this.config.hindsight };
  }

  /** Returns the facts that must be equal for an exact resume. Hashes the frozen weights once. */
  #exactFacts(): Promise<Readonly<Record<string, Json>>> {
    const { model, tokenizer } = this.#options;
    const { keepCheckpoints: _, ...lasting } = this.config;
    this.#exact ??= exactModelFacts(model).then((facts) => ({
      ...lasting,
      tokenizer: tokenizer.fingerprint,
      ...facts,
    }));
    return this.#exact;
  }
}

type Method = "update" | "save" | "resume" | "logProbs";
