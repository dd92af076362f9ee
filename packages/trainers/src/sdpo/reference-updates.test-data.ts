import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import type { Prompt, Tokenizer } from "@periodic-eval/core";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import { weightName } from "@periodic-eval/tfjs";
import { withLora, type CheckpointLM, type LoraLM } from "@periodic-eval/models";
import { openSafetensors } from "@periodic-eval/safetensors";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";
import type { SDPOExample } from "./example.ts";
import { parseSDPOConfig, type SDPOConfig, type SDPOMetrics } from "./sdpo-config.ts";
import { SDPOTrainer } from "./sdpo-trainer.ts";

/** A case of the parity tests: the trained weights and the configuration. */
export interface UpdatesCase {
  readonly name: string;
  /** Whether an adapter or all weights are trained. */
  readonly isLora: boolean;
  readonly config: Partial<SDPOConfig>;
}

/** At these rates, forty gradient steps move weights by more than a hundred times the tolerance. */
const common = { learningRate: 2e-3, weightDecay: 0.01, decay: "all", teacherTopK: 10 } as const;

/** The cases cover every form of the loss, both teachers, clipped ratios, and batches in one pass and in several. */
export const updatesCases: readonly UpdatesCase[] = [
  { name: "adapter, teacher base", isLora: true, config: common },
  {
    name: "adapter, teacher current, claas, clipped",
    isLora: true,
    config: { ...common, teacher: "current", alpha: 0.3, klRegWeight: 0.1, klForm: "claas", isClip: 1.02 },
  },
  {
    name: "adapter, alpha 1, k3, in passes of 2",
    isLora: true,
    config: { ...common, alpha: 1, klRegWeight: 0.2, microBatchSize: 2 },
  },
  {
    name: "all weights, teacher current",
    isLora: false,
    config: { ...common, teacher: "current", alpha: 0.8, teacherTopK: 100 },
  },
];

/** An answer without the log-probs at sampling. */
export type Answer = Omit<SDPOExample, "oldLogProbs">;

/** Creates ten batches of three answers of different lengths, alternating between three kinds. */
export function batchesOf(answer: (draw: (below: number) => number, length: number) => Answer): Answer[][] {
  const kinds = [0, 1, 2].map((kind) => {
    const random = namedStream(seedOf("sdpo batches", kind));
    const draw = (below: number) => Math.floor(random() * below);
    return [3, 7, 5].map((length) => answer(draw, length + kind));
  });
  return Array.from({ length: 10 }, (_, i) => kinds[i % kinds.length]!);
}

/** Creates an adapter with non-zero B: with a B of 0, A has no gradient and the KL is 0. */
export function startedLora(base: CheckpointLM): LoraLM {
  const lora = withLora(base, { rank: 2, alpha: 4, targetModules: ["q_proj", "v_proj"], seed: "sdpo" });
  for (const variable of lora.trainables()) {
    const random = namedStream(seedOf("sdpo adapter", weightName(variable)));
    tf.tidy(() => {
      const values = Float32Array.from({ length: variable.size }, () => (2 * random() - 1) * 0.3);
      variable.assign(tf.tensor(values, variable.shape));
    });
  }
  return lora;
}

export interface TrainedUpdates {
  /** Metrics of each gradient step of each update. */
  readonly updates: readonly (readonly SDPOMetrics[])[];
  /** Folder of the saved model or adapter. */
  readonly folder: string;
}

/** Runs ten updates with SDPOTrainer; log-probs at sampling are those right before each update. */
export async function trainUpdates(
  model: CheckpointLM | LoraLM,
  tokenizer: Tokenizer,
  config: Partial<SDPOConfig>,
  batches: readonly (readonly Answer[])[],
): Promise<TrainedUpdates> {
  const trainer = new SDPOTrainer({ model, tokenizer, config });
  try {
    const updates: (readonly SDPOMetrics[])[] = [];
    for (const batch of batches) {
      const old = await trainer.logProbs(batch);
      const { steps } = await trainer.update(batch.map((one, i) => ({ ...one, oldLogProbs: old[i]! })));
      updates.push(steps);
    }
    const folder = await temporaryFolder();
    await model.save(folder);
    return { updates, folder };
  } finally {
    trainer.dispose();
  }
}

/** Returns the input of benchmarks/peers/torch_sdpo.py, without folders. */
export function workOf(
  tokenizer: Tokenizer,
  given: Partial<SDPOConfig>,
  batches: readonly (readonly Answer[])[],
  teacherPrompt: (one: Answer) => Prompt,
) {
  const config = parseSDPOConfig(given);
  const idsOf = (prompt: Prompt, { response }: Answer) => [...tokenizer.render(prompt).ids, ...response];
  return {
    config: {
      learning_rate: config.learningRate,
      weight_decay: config.weightDecay,
      max_grad_norm: config.maxGradNorm,
      steps_per_batch: config.stepsPerBatch,
      teacher: config.teacher,
      teacher_top_k: config.teacherTopK,
      alpha: config.alpha,
      is_clip: config.isClip,
      kl_reg_weight: config.klRegWeight,
      kl_form: config.klForm,
    },
    updates: batches.map((batch) =>
      batch.map((one) => ({
        student: idsOf(one.prompt, one),
        teacher: idsOf(teacherPrompt(one), one),
        response: one.response.length,
      })),
    ),
  };
}

/** Reads every tensor of a saved model or adapter, by name. */
export async function savedWeights(
  folder: string,
  isLora: boolean,
): Promise<Readonly<Record<string, Float32Array>>> {
  const file = await openSafetensors(
    join(folder, isLora ? "adapter_model.safetensors" : "model.safetensors"),
  );
  try {
    const weights: Record<string, Float32Array> = {};
    for (const name of [...file.tensors.keys()].sort())
      weights[name] = Float32Array.from((await file.read(name)) as Float32Array);
    return weights;
  } finally {
    await file.close();
  }
}
