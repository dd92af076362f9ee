import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { namedStream, seedOf } from "@periodic-eval/core/random";
import { variableName, weightName, type NamedRandom, type TrainableLM } from "@periodic-eval/tfjs";
import { writeSafetensors } from "@periodic-eval/safetensors";

export interface TinyLMOptions {
  readonly vocabSize: number;
  readonly seed?: string;
  /** Probability of dropping a hidden value in training. */
  readonly dropout?: number;
  readonly contextLength?: number;
}

const width = 6;

/**
 * Creates the smallest model with everything that a trainer uses: tanh of the token's embedding, dropout, a head. It predicts
 * from the last token alone, which is enough to learn and to forget something.
 */
export function tinyLM({
  vocabSize,
  seed = "tiny",
  dropout = 0,
  contextLength = 64,
}: TinyLMOptions): TrainableLM {
  const create = (name: string, shape: [number, number]) => {
    const random = namedStream(seedOf(seed, name));
    const values = Float32Array.from({ length: shape[0] * shape[1] }, () => random() - 0.5);
    return tf.tidy(() => tf.variable(tf.tensor2d(values, shape), true, variableName(name)));
  };
  const embedding = create("model.embed_tokens.weight", [vocabSize, width]);
  const head = create("lm_head.weight", [width, vocabSize]);
  let training = true;

  const states = (ids: tf.Tensor): tf.Tensor2D =>
    tf.tanh(tf.matMul(tf.oneHot(tf.reshape(ids, [-1]), vocabSize), embedding as tf.Tensor2D));
  const logits = (ids: tf.Tensor2D, rows: tf.Tensor1D, mask: tf.Tensor | null): tf.Tensor2D => {
    // Selects the tokens before the embedding, because wasm lacks the gradient of a gather.
    const hidden = states(tf.gather(tf.reshape(ids, [-1]), rows));
    return tf.matMul(mask === null ? hidden : tf.mul(hidden, mask), head);
  };

  return {
    vocabSize,
    contextLength,
    logits: (ids) =>
      tf.tidy(() => tf.reshape(tf.matMul(states(ids), head as tf.Tensor2D), [...ids.shape, vocabSize])),
    logitsAt: (ids, rows) => tf.tidy(() => logits(ids, rows, null)),
    trainingLogits(ids, rows, random: NamedRandom) {
      return tf.tidy(() => {
        if (!training || dropout === 0) return logits(ids, rows, null);
        const draw = random("dropout");
        const keep = Float32Array.from({ length: rows.size * width }, () =>
          draw() < dropout ? 0 : 1 / (1 - dropout),
        );
        return logits(ids, rows, tf.tensor2d(keep, [rows.size, width]));
      });
    },
    enterEval() {
      const before = training;
      training = false;
      return () => {
        training = before;
      };
    },
    modes: () => `training=${training}`,
    weights: () =>
      [embedding, head].map((variable) => ({ name: weightName(variable), read: () => variable })),
    trainables: () => [embedding, head],
    async save(folder) {
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, "config.json"), JSON.stringify({ model_type: "tiny" }));
      await writeSafetensors(
        join(folder, "model.safetensors"),
        [embedding, head].map((each) => ({
          name: weightName(each),
          shape: each.shape,
          values: async () => each.data<"float32">(),
        })),
      );
    },
    dispose: () => tf.dispose([embedding, head]),
  };
}
