import * as tf from "@tensorflow/tfjs-core";
import type { Json } from "@periodic-eval/core";
import { configError } from "@periodic-eval/contracts/options";
import { canonicalJson } from "@periodic-eval/core/random";
import type { TrainableLM } from "@periodic-eval/tfjs";
import { checkpointsOf, type Checkpoint, type Checkpoints } from "../checkpoint/checkpoints.ts";
import { checkStart, restoreTensors, saveTensors } from "../checkpoint/saved-tensors.ts";
import type { PhaseStart, TrainerState } from "../checkpoint/trainer-state.ts";
import { AdamW, clipFactor, GradientNorm } from "../optimizer/adamw.ts";
import type { StepWork } from "./training-data.ts";

/** `auto` continues from the newest complete checkpoint of the phase; `never` moves the checkpoints away and starts over. */
export type Resume = "auto" | "never";

export const resumeModes = ["auto", "never"] as const satisfies readonly Resume[];

/** The options of every trainer's configuration that concern the optimizer and checkpoints. */
export interface LearnerConfig {
  readonly adamBetas: readonly [number, number];
  readonly adamEpsilon: number;
  readonly weightDecay: number;
  readonly decay: "all" | "no-norms";
  readonly maxGradNorm: number | null;
  readonly keepCheckpoints: number;
  readonly seed: number | string;
}

export interface LearnerOptions {
  readonly model: TrainableLM;
  readonly config: LearnerConfig;
  readonly phase: string;
  /** Undefined for a trainer that writes no checkpoints. */
  readonly runDir: string | undefined;
  warn(where: string, message: string): void;
}

export interface UpdateResult {
  readonly loss: number;
  /** Norm of the mean loss's gradients, before clipping. */
  readonly gradNorm: number;
  /** Means of the other sums, by name. */
  readonly means: Readonly<Record<string, number>>;
  /** False if the loss or the norm is NaN or Inf; the weights are unchanged then. */
  readonly applied: boolean;
}

/** The part of a checkpoint's state that depends on the training loop; the learner adds the rest. */
export type ProgressToSave = Omit<
  TrainerState,
  "schema_version" | "phase" | "seed" | "optimizer_steps" | "files"
>;

/** The conditions under which a resume is exact. */
export interface ResumeConditions {
  /** Returns the facts that must equal those of a checkpoint after `step` completed optimizer steps. */
  exact(step: number): Readonly<Record<string, Json>>;
  /** Optimizer steps of the phase. Undefined for a trainer whose steps are not planned. */
  readonly maxSteps?: number;
  /** Undefined if the earlier phases are unknown. */
  readonly start?: PhaseStart | undefined;
}

/**
 * A model in training: its AdamW optimizer, gradient clipping and checkpoints. Every trainer owns one. The loop decides when
 * to update and when to save.
 */
export class Learner {
  readonly model: TrainableLM;
  readonly optimizer: AdamW;
  readonly #options: LearnerOptions;
  readonly #gradientNorm = new GradientNorm();

  constructor(options: LearnerOptions) {
    const { adamBetas, adamEpsilon, weightDecay, decay } = options.config;
    this.#options = options;
    this.model = options.model;
    this.optimizer = new AdamW(options.model.trainables(), {
      betas: adamBetas,
      epsilon: adamEpsilon,
      weightDecay,
      decay,
    });
  }

  /** Makes one optimizer step: gradients, their norm, clipping, update. Leaves no tensor behind. */
  async update(work: StepWork, learningRate: number): Promise<UpdateResult> {
    const { loss: sum, gradients, sums = {} } = work.gradients();
    const mean = async (total: tf.Scalar) => (await total.data<"float32">())[0]! / work.divisor;
    try {
      const loss = await mean(sum);
      const norm = await this.#gradientNorm.of(Object.values(gradients));
      const gradNorm = (norm ?? 0) / work.divisor;
      const means: Record<string, number> = {};
      for (const [name, total] of Object.entries(sums)) means[name] = await mean(total);
      const applied = Number.isFinite(loss) && Number.isFinite(gradNorm);
      const scale = clipFactor(gradNorm, this.#options.config.maxGradNorm) / work.divisor;
      if (applied) this.optimizer.apply(gradients, learningRate, scale);
      return { loss, gradNorm, means, applied };
    } finally {
      tf.dispose([sum, gradients, sums]);
    }
  }

  /**
   * The checkpoints of the phase.
   *
   * @throws PeriodicEvalError `config` if the trainer has no `runDir`.
   */
  get checkpoints(): Checkpoints {
    const { runDir, phase, config, warn } = this.#options;
    if (runDir !== undefined) return checkpointsOf({ runDir, phase, keep: config.keepCheckpoints, warn });
    throw configError({
      where: "trainer options",
      path: ["runDir"],
      got: "no runDir",
      expected: "a folder for checkpoints",
      fix: "Pass runDir to the trainer.",
    });
  }

  /** Writes a checkpoint of the model and the optimizer. Returns its folder. */
  save({ exact, start, session, note, ...progress }: ProgressToSave): Promise<string> {
    const { phase, config } = this.#options;
    return this.checkpoints.save(
      {
        schema_version: 1,
        phase,
        ...progress,
        seed: config.seed,
        optimizer_steps: this.optimizer.steps,
        exact,
        start,
        session,
        note,
      },
      (folder) => saveTensors(folder, this.model, this.optimizer),
    );
  }

  /**
   * Restores the model and the optimizer from the newest complete checkpoint. Returns null if the phase starts from the
   * beginning.
   *
   * Warns if the phase has grown and its learning rates depend on its length: the remaining steps use those of the longer phase.
   *
   * @throws PeriodicEvalError `config` if a resume would not be exact, `store` if every checkpoint is damaged.
   */
  async resume(mode: Resume, { exact, start, maxSteps }: ResumeConditions): Promise<Checkpoint | null> {
    const { checkpoints } = this;
    if (mode === "never") {
      await checkpoints.setAside();
      return null;
    }
    const newest = await checkpoints.newest();
    if (newest === null) return null;
    checkStart(newest.path, newest.state.phase, newest.state.start, start);
    if (checkExact(newest, exact(newest.state.step), maxSteps) === "longer")
      this.#options.warn(newest.path, longerText(newest.state.max_steps, maxSteps!));
    await this.restore(newest);
    return newest;
  }

  /** Gives the model and the optimizer the values of a checkpoint. */
  restore({ path, state }: Checkpoint): Promise<void> {
    return restoreTensors(path, this.model, this.optimizer, state.optimizer_steps);
  }

  /** Disposes the optimizer's tensors. The model belongs to the caller. */
  dispose(): void {
    this.optimizer.dispose();
    this.#gradientNorm.dispose();
  }
}

/** Facts that set learning rates by the length of the phase. A phase that grows may change them. */
const lengthFacts: readonly string[] = ["maxSteps", "decaySteps", "decayRatio", "decayType"];

const longerText = (before: number | null, now: number): string =>
  `the phase grew from ${before} to ${now} steps: the remaining steps use the learning rates of the longer schedule, so the weights will differ from those of ${now} steps without a stop`;

/** Names facts of which only a hash is kept. */
const hashedFacts: Readonly<Record<string, string>> = {
  data: "training rows",
  frozenWeights: "frozen weights",
  reference: "reference model",
  tokenizer: "tokenizer",
};

/**
 * With another model, data or arithmetic, the resumed run would match neither the old run nor a new one. A longer phase is what
 * its user asked for.
 *
 * @returns Whether the resume is exact, or the learning rates follow a longer phase.
 */
function checkExact(
  { path, state }: Checkpoint,
  exact: Readonly<Record<string, Json>>,
  maxSteps = 0,
): "exact" | "longer" {
  const written = state.exact;
  const differing = [...new Set([...Object.keys(written), ...Object.keys(exact)])].filter(
    (name) => canonicalJson(written[name] ?? null) !== canonicalJson(exact[name] ?? null),
  );
  if (differing.length === 0) return "exact";
  const isLonger = state.max_steps !== null && maxSteps > state.max_steps;
  if (isLonger && differing.every((name) => lengthFacts.includes(name))) return "longer";
  const list = (from: Readonly<Record<string, Json>>, how: string) =>
    differing
      .map((name) =>
        name in hashedFacts ? `${how} ${hashedFacts[name]}` : `${name} ${JSON.stringify(from[name] ?? null)}`,
      )
      .join(", ");
  throw configError({
    where: path,
    got: list(exact, "different"),
    expected: `${list(written, "the same")}, as in the checkpoint`,
    fix: 'Resume with the same configuration, data and model (maxSteps may be larger), choose another runDir, or start over with resume: "never".',
  });
}
