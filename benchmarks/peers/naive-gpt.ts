import * as tf from "@tensorflow/tfjs";

export interface NaiveShape {
  readonly heads: number;
  readonly layers: number;
}

/** A GPT-2 training step with TensorFlow.js's standard operations, gradients and Adam. */
export interface NaiveTraining {
  /** Returns the mean loss in nats. */
  step(ids: tf.Tensor2D, targets: tf.Tensor1D): Promise<number>;
  dispose(): void;
}

/** Looks up embeddings with a custom gradient, because that of `tf.gather` has no wasm kernel. */
function lookup(embedding: tf.Tensor2D, ids: tf.Tensor1D): tf.Tensor {
  const gather = tf.customGrad((table) => ({
    value: tf.gather(table as tf.Tensor2D, ids),
    gradFunc: (gradient) => tf.scatterND(tf.reshape(ids, [-1, 1]), gradient, embedding.shape),
  }));
  return gather(embedding);
}

/**
 * Creates the training step.
 *
 * @param weights Weights by their names in the checkpoint; linear maps have shape [in, out]. They are copied.
 */
export function naiveGpt(
  weights: ReadonlyMap<string, tf.Tensor>,
  { heads, layers }: NaiveShape,
  learningRate: number,
): NaiveTraining {
  const variables = new Map([...weights].map(([name, values]) => [name, tf.variable(tf.clone(values))]));
  const get = (name: string) => variables.get(name)! as tf.Tensor;
  const optimizer = tf.train.adam(learningRate);

  const norm = (x: tf.Tensor, name: string) => {
    const { mean, variance } = tf.moments(x, -1, true);
    const normed = tf.div(tf.sub(x, mean), tf.sqrt(tf.add(variance, 1e-5)));
    return tf.add(tf.mul(normed, get(`${name}.weight`)), get(`${name}.bias`));
  };
  const linear = (x: tf.Tensor, name: string) => {
    const [inputs, outputs] = get(`${name}.weight`).shape as [number, number];
    const rows = tf.matMul(tf.reshape(x, [-1, inputs]), get(`${name}.weight`));
    return tf.reshape(tf.add(rows, get(`${name}.bias`)), [...x.shape.slice(0, -1), outputs]);
  };
  const gelu = (x: tf.Tensor) => {
    const inner = tf.mul(tf.add(x, tf.mul(tf.pow(x, 3), 0.044715)), Math.sqrt(2 / Math.PI));
    return tf.mul(tf.mul(x, 0.5), tf.add(tf.tanh(inner), 1));
  };
  const attention = (x: tf.Tensor, name: string, mask: tf.Tensor) => {
    const [batch, length, width] = x.shape as [number, number, number];
    const parts = tf.split(linear(x, `${name}.c_attn`), 3, -1);
    const [query, key, value] = parts.map((part) =>
      tf.transpose(tf.reshape(part, [batch, length, heads, width / heads]), [0, 2, 1, 3]),
    ) as [tf.Tensor, tf.Tensor, tf.Tensor];
    const scores = tf.mul(tf.matMul(query, key, false, true), (width / heads) ** -0.5);
    const seen = tf.matMul(tf.softmax(tf.add(scores, mask)), value);
    return linear(tf.reshape(tf.transpose(seen, [0, 2, 1, 3]), [batch, length, width]), `${name}.c_proj`);
  };
  const loss = (ids: tf.Tensor2D, targets: tf.Tensor1D) => {
    const [batch, length] = ids.shape;
    const embedding = get("transformer.wte.weight") as tf.Tensor2D;
    const [vocabulary, width] = embedding.shape;
    const below = tf.linalg.bandPart(tf.ones([length, length]), -1, 0);
    const mask = tf.mul(tf.sub(1, below), -1e9);
    const rows = lookup(embedding, tf.reshape(ids, [-1]));
    const places = tf.slice(get("transformer.wpe.weight"), [0, 0], [length, width]);
    let x = tf.add(tf.reshape(rows, [batch, length, width]), places);
    for (let layer = 0; layer < layers; layer += 1) {
      const name = `transformer.h.${layer}`;
      x = tf.add(x, attention(norm(x, `${name}.ln_1`), `${name}.attn`, mask));
      x = tf.add(x, linear(gelu(linear(norm(x, `${name}.ln_2`), `${name}.mlp.c_fc`)), `${name}.mlp.c_proj`));
    }
    const states = tf.reshape(norm(x, "transformer.ln_f"), [-1, width]);
    const logits = tf.matMul(states, get("lm_head.weight"));
    const chosen = tf.oneHot(targets, vocabulary);
    return tf.neg(tf.mean(tf.sum(tf.mul(tf.logSoftmax(logits), chosen), -1))) as tf.Scalar;
  };
  return {
    async step(ids, targets) {
      const value = optimizer.minimize(() => loss(ids, targets), true)!;
      const [mean] = await value.data();
      value.dispose();
      return mean!;
    },
    dispose() {
      optimizer.dispose();
      for (const variable of variables.values()) variable.dispose();
    },
  };
}
