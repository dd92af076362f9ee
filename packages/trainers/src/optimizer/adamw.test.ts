import * as tf from "@tensorflow/tfjs";
import { PeriodicEvalError } from "@periodic-eval/core";
import { adamWKernel } from "@periodic-eval/tfjs";
import { useBackend } from "@periodic-eval/models";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import "@tensorflow/tfjs-backend-wasm";
import { AdamW, isDecayedWithoutNorms } from "./adamw.ts";

/** torch.optim.AdamW (2.13, `_single_tensor_adamw`) written out for one weight in double precision. */
function torchAdamW(weight: number, gradients: readonly number[], lr: number, weightDecay: number) {
  const [beta1, beta2, eps] = [0.9, 0.999, 1e-8];
  let [m, v] = [0, 0];
  for (const [i, gradient] of gradients.entries()) {
    weight *= 1 - lr * weightDecay;
    m += (gradient - m) * (1 - beta1);
    v = beta2 * v + (1 - beta2) * gradient * gradient;
    const denominator = Math.sqrt(v) / Math.sqrt(1 - beta2 ** (i + 1)) + eps;
    weight -= (lr / (1 - beta1 ** (i + 1))) * (m / denominator);
  }
  return { weight, m, v };
}

it("updates weights on wasm with the same bits with the backend's kernel and without", async () => {
  await useBackend({ backend: "wasm" });
  const kernel = tf.getKernel(adamWKernel, "wasm");
  const train = () => {
    const [tiny, odd, large] = [[3], [7, 3], [64, 33]].map((shape, i) =>
      tf.tidy(() => {
        const values = tf.randomNormal(shape, 0, 1, "float32", i + 1);
        return tf.variable(values, true, `${i}.${i === 1 ? "norm" : "weight"}`);
      }),
    ) as [tf.Variable, tf.Variable, tf.Variable];
    const weights = [tiny, odd, large];
    const optimizer = new AdamW(weights, { weightDecay: 0.1, decay: "no-norms" });
    for (let step = 0; step < 5; step++) {
      const gradients = weights.map(({ name, shape }) => {
        return [name, tf.randomNormal(shape, 0, 1, "float32", step + 9)] as const;
      });
      optimizer.apply(Object.fromEntries(gradients), 0.01, 0.3);
      tf.dispose(gradients.map(([, gradient]) => gradient));
    }
    const values = [...weights, ...optimizer.slots().map((slot) => slot.read())];
    const bits = values.map((tensor) => [...new Int32Array(Float32Array.from(tensor.dataSync()).buffer)]);
    optimizer.dispose();
    tf.dispose(weights);
    return bits;
  };
  const before = tf.memory().numTensors;
  const found = train();
  tf.unregisterKernel(adamWKernel, "wasm");
  try {
    expect(found).toEqual(train());
  } finally {
    tf.registerKernel(kernel);
  }
  expect(tf.memory().numTensors).toBe(before);
});

describe.each(["cpu", "wasm"])("AdamW on %s", (backend) => {
  beforeAll(async () => {
    await tf.setBackend(backend);
    await tf.ready();
  });
  afterEach(() => tf.disposeVariables());

  const variable = (values: number[], name: string) => tf.variable(tf.tensor1d(values), true, name);
  const update = (optimizer: AdamW, name: string, gradient: number[], gradientScale = 1) =>
    tf.tidy(() => optimizer.apply({ [name]: tf.tensor1d(gradient) }, 0.1, gradientScale));

  it("moves a weight by the learning rate on the first step, after the decay", () => {
    // m/c₁ = g and v/c₂ = g², so the first step is lr · sign(g): 2 · (1 − 0.1 · 0.5) − 0.1 = 1.8; 1 · 0.95 + 0.1 = 1.05.
    const weight = variable([2, 1], "w");
    const optimizer = new AdamW([weight], { weightDecay: 0.5 });
    update(optimizer, "w", [3, -0.01]);
    expect([...weight.dataSync()]).toEqual([expect.closeTo(1.8, 5), expect.closeTo(1.05, 5)]);
    optimizer.dispose();
  });

  it("equals torch's arithmetic over 50 steps", () => {
    const gradients = Array.from({ length: 50 }, (_, i) => Math.sin(i) + 0.3);
    const weight = variable([0.7], "w");
    const optimizer = new AdamW([weight], { weightDecay: 0.1 });
    for (const gradient of gradients) update(optimizer, "w", [gradient]);
    const expected = torchAdamW(0.7, gradients, 0.1, 0.1);
    const [expAvg, expAvgSq] = optimizer.slots();
    expect(weight.dataSync()[0]).toBeCloseTo(expected.weight, 4);
    expect(expAvg!.read().dataSync()[0]).toBeCloseTo(expected.m, 5);
    expect(expAvgSq!.read().dataSync()[0]).toBeCloseTo(expected.v, 5);
    expect(optimizer.steps).toBe(50);
    optimizer.dispose();
  });

  it("scales gradients first", () => {
    const [one, other] = [variable([1], "one"), variable([1], "other")];
    const [a, b] = [new AdamW([one]), new AdamW([other])];
    for (const gradient of [4, -1, 2]) {
      update(a, "one", [gradient * 0.25]);
      update(b, "other", [gradient], 0.25);
    }
    expect(one.dataSync()).toEqual(other.dataSync());
    a.dispose();
    b.dispose();
  });

  it("continues bit-exactly from restored slots", () => {
    const [one, other] = [variable([0.3, -2], "w"), variable([0, 0], "w2")];
    const optimizer = new AdamW([one]);
    for (const gradient of [1, 0.5, -3]) update(optimizer, "w", [gradient, -gradient]);
    other.assign(tf.tidy(() => tf.clone(one)));
    const resumed = new AdamW([other]);
    const values = new Map(
      optimizer.slots().map((slot) => [slot.name.replace("w.", "w2."), slot.read().dataSync<"float32">()]),
    );
    resumed.restore(optimizer.steps, values);
    update(optimizer, "w", [0.1, 0.2]);
    update(resumed, "w2", [0.1, 0.2]);
    expect(other.dataSync()).toEqual(one.dataSync());
    optimizer.dispose();
    resumed.dispose();
  });

  it("throws for slots of another model, and changes nothing then", () => {
    const weight = variable([1, 2], "w");
    const optimizer = new AdamW([weight]);
    update(optimizer, "w", [1, 1]);
    const before = optimizer.slots().map((slot) => slot.read().dataSync());
    const wrong = new Map([
      ["w.exp_avg", new Float32Array(2)],
      ["w.exp_avg_sq", new Float32Array(3)],
    ]);
    expect(() => optimizer.restore(7, wrong)).toThrow(/w\.exp_avg_sq: got 3 values, expected 2 values/);
    expect(() => optimizer.restore(7, new Map())).toThrow(PeriodicEvalError);
    expect(optimizer.steps).toBe(1);
    expect(optimizer.slots().map((slot) => slot.read().dataSync())).toEqual(before);
    optimizer.dispose();
  });

  it(`excludes norms and biases from decay with "no-norms", and leaves a variable without gradient unchanged`, () => {
    const norm = variable([1], "model.norm.weight");
    const projection = variable([1], "lm_head.weight");
    const still = variable([1], "still.weight");
    const optimizer = new AdamW([norm, projection, still], { weightDecay: 0.5, decay: "no-norms" });
    tf.tidy(() => {
      const zero = tf.tensor1d([0]);
      optimizer.apply({ [norm.name]: zero, [projection.name]: zero }, 0.1);
    });
    expect([norm, projection, still].map((each) => each.dataSync()[0])).toEqual([
      1,
      expect.closeTo(0.95, 6),
      1,
    ]);
    optimizer.dispose();
  });

  it("keeps the number of tensors constant", () => {
    const weight = variable([1, 2, 3], "w");
    const before = tf.memory().numTensors;
    const optimizer = new AdamW([weight]);
    for (let i = 0; i < 3; i++) {
      update(optimizer, "w", [1, 2, 3]);
      expect(tf.memory().numTensors).toBe(before + 2);
    }
    optimizer.dispose();
    expect(tf.memory().numTensors).toBe(before);
  });
});

it.each([
  [{ weight_decay: 0.1 }, { path: ["weight_decay"], got: 'the unknown option "weight_decay"' }],
  [{ betas: [2, -1] }, { path: ["betas", 0], got: "2", expected: "a number in [0, 1)" }],
  [{ betas: [0.9] }, { path: ["betas"], got: "[0.9]", expected: "two numbers in [0, 1)" }],
  [{ epsilon: Number.NaN }, { path: ["epsilon"], got: "NaN" }],
  [{ weightDecay: -0.1 }, { path: ["weightDecay"], got: "-0.1", expected: "a number of 0 or more" }],
  [{ decay: "none" }, { path: ["decay"], got: '"none"', expected: '"all" or "no-norms"' }],
])("AdamW throws for the options %j", (options, error) => {
  const code = "config";
  expect(() => new AdamW([], options as object)).toThrow(expect.objectContaining({ code, ...error }));
});

it("excludes the same weights from decay as transformers", () => {
  const names = [
    "model.layers.0.input_layernorm.weight",
    "model.layers.0.self_attn.q_norm.weight",
    "model.norm.weight",
    "model.layers.0.self_attn.q_proj.bias",
    "model.layers.0.self_attn.q_proj.weight",
    "model.embed_tokens.weight",
  ];
  expect(names.map(isDecayedWithoutNorms)).toEqual([false, false, false, false, true, true]);
});
