import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { beforeEach, describe, expect, it } from "vitest";
import { useBackend } from "../../../models/src/backend/use-backend.ts";
import { hasNativeKernels } from "../../../models/src/ops/native.ts";
import { activate, activateGated } from "../../../models/src/ops/activation.ts";
import { linear } from "../../../models/src/ops/linear.ts";
import { columns, rowsAt } from "../../../models/src/ops/select.ts";
import { layerNorm, rmsNorm } from "../../../models/src/ops/norms.ts";
import { softCap } from "../../../models/src/ops/arithmetic.ts";
import { hasNative, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import type { Sizes } from "./tracer.ts";
import { GraphFunction, graphBackend } from "./graph-function.ts";
import { tracePass } from "./trace-pass.ts";
import { trace } from "./trace.ts";

const primes = { rows: 10_007, columns: 10_009 };

/** Reshapes [rows, 6], with rows a product of two open sizes, and back. */
const turned = (x: tf.Tensor, { rows, columns: width }: Sizes) =>
  tf.reshape(tf.transpose(tf.reshape(x, [rows!, width!, 3]), [1, 0, 2]), [width! * rows!, 3]);

describe("trace", () => {
  beforeEach(async () => void (await useBackend({ backend: "wasm" })));

  const traceOf = (run: (x: tf.Tensor2D, weight: tf.Tensor2D) => tf.Tensor) =>
    trace(
      ([x, weight]) => [run(x as tf.Tensor2D, weight as tf.Tensor2D)],
      [
        { type: "float32", shape: [primes.rows, 3] },
        { type: "float32", shape: [3, 4] },
      ],
      primes,
    );

  it("runs the function without computing, restores the backend, and leaves no tensors", () => {
    const before = tf.memory().numTensors;
    const { nodes, inputs, outputs } = traceOf((x, weight) => tf.keep(tf.matMul(x, weight)));
    expect(nodes.map(({ op }) => op)).toEqual(["Placeholder", "Placeholder", "MatMul"]);
    expect([inputs, outputs]).toEqual([["n0", "n1"], ["n2"]]);
    expect(tf.getBackend()).toBe("wasm");
    expect(tf.memory().numTensors).toBe(before);
    expect(tf.add(1, 2).dataSync()[0]).toBe(3);
  });

  it("writes a shape with one open size as a constant, and one with two as an input", () => {
    const first = traceOf((x) => tf.reshape(x, [primes.rows * 3, 1]));
    expect(first.shapes).toEqual([]);
    const second = trace(
      ([x]) => [turned(x!, primes)],
      [{ type: "float32", shape: [primes.rows, primes.columns * 3] }],
      primes,
    );
    expect(second.shapes.map(({ dimensions }) => dimensions)).toEqual([
      [
        { constant: 1, sizes: ["rows"] },
        { constant: 1, sizes: ["columns"] },
        { constant: 3, sizes: [] },
      ],
    ]);
  });

  it("throws for an unknown kernel and for a foreign tensor, and restores the backend", () => {
    expect(() => traceOf((x) => tf.cumsum(x, 1))).toThrow(/Cumsum/);
    const foreign = tf.ones([3, 4]);
    expect(() => traceOf((x) => tf.matMul(x, foreign))).toThrow("reads a tensor that is not an argument");
    expect(() => traceOf((x) => tf.add(x, tf.scalar(true, "bool")))).toThrow("creates a tensor of bool");
    foreign.dispose();
    expect(tf.getBackend()).toBe("wasm");
    expect(tf.add(1, 2).dataSync()[0]).toBe(3);
  });
});

describe("tracePass", () => {
  beforeEach(async () => void (await useBackend({ backend: "wasm" })));

  // On CPUs with AVX-512 TensorFlow 2.15 merges x · sigmoid(x), and then has no sigmoid to output.
  it("outputs kept tensors through nodes that nothing else reads", () => {
    const x = { type: "float32", shape: [primes.rows, 3] } as const;
    const { forward, backward } = tracePass(
      ([input]) => activate("silu", input as tf.Tensor2D),
      [x],
      [0],
      [...x.shape],
      primes,
    );
    const [, ...saved] = forward.outputs;
    expect(saved.length).toBeGreaterThan(0);
    for (const name of saved) {
      expect(forward.nodes.find((node) => node.name === name)!.op).toBe("Identity");
      expect(forward.nodes.some(({ inputs }) => inputs.includes(name))).toBe(false);
    }
    expect(backward.inputs).toHaveLength(1 + saved.length + 1);
  });
});

describe.skipIf(!hasNative)(`a graph on ${nativeBackend}`, () => {
  beforeEach(async () => void (await useBackend({ backend: nativeBackend })));

  it("repeats the results of norms and activations in the backward pass instead of keeping them", () => {
    if (!hasNativeKernels()) return;
    const of = (...shape: number[]) => ({ type: "float32", shape }) as const;
    const { forward, backward } = tracePass(
      ([x, factor, gate, up, down]) => {
        const normed = rmsNorm(x as tf.Tensor2D, factor as tf.Tensor1D, 1e-5, 0);
        const [a, b] = [gate, up].map((each) => linear(normed, each as tf.Tensor2D, null));
        return softCap(linear(activateGated("silu", a!, b!), down as tf.Tensor2D, null), 3);
      },
      [of(primes.rows, 3), of(3), of(3, 5), of(3, 5), of(5, 3)],
      [0, 1, 2, 3, 4],
      [primes.rows, 3],
      primes,
    );
    const countIn = (nodes: typeof forward.nodes, op: string) =>
      nodes.filter((node) => node.op === op).length;
    for (const op of ["PeriodicRmsNorm", "PeriodicGatedSilu"]) {
      expect([op, countIn(forward.nodes, op), countIn(backward.nodes, op)]).toEqual([op, 1, 1]);
    }
    // Gate, up and the bounded value of the cap are kept.
    expect(forward.outputs).toHaveLength(1 + 3);
  });

  it("runs only on native TensorFlow", async () => {
    expect(graphBackend()).not.toBeNull();
    await useBackend({ backend: "wasm" });
    expect(graphBackend()).toBeNull();
  });

  it("equals the separate operations at all sizes, with the current weights", () => {
    const weight = tf.variable(tf.randomNormal<tf.Rank.R2>([6, 8], 0, 1, "float32", 1));
    const vector = tf.variable(tf.randomNormal([8], 0, 1, "float32", 2));
    const run = (x: tf.Tensor2D, at: tf.Tensor1D, weight: tf.Tensor2D, vector: tf.Tensor1D) => {
      const y = layerNorm(rmsNorm(tf.matMul(x, weight) as tf.Tensor2D, vector, 1e-5, 1), vector, vector, {
        epsilon: 1e-5,
        offset: 1,
      });
      const [left, right] = [columns(y, 0, 2, 2), columns(y, 2, 2, 2)];
      const all = tf.concat([activate("gelu", left), activate("geluTanh", right), activate("silu", left)], 1);
      const parts = tf.split(softCap(all, 3), [4, 8], 1);
      const soft = tf.softmax(
        tf.add<tf.Tensor2D>(activate("relu", parts[0] as tf.Tensor2D), tf.max(parts[1]!, -1, true)),
      );
      return [rowsAt(soft, at), tf.log(tf.tile(soft, [1, 2]))];
    };
    const traced = trace(
      ([x, at, weight, vector]) =>
        run(x as tf.Tensor2D, at as tf.Tensor1D, weight as tf.Tensor2D, vector as tf.Tensor1D),
      [
        { type: "float32", shape: [primes.rows, 6] },
        { type: "int32", shape: [primes.columns] },
        { type: "float32", shape: [6, 8] },
        { type: "float32", shape: [8] },
      ],
      primes,
    );
    const graph = new GraphFunction(graphBackend()!, traced);
    const before = tf.memory().numTensors;
    for (const [rows, wanted] of [
      [5, [4, 0, 0]],
      [1, [0]],
      [64, [63, 2, 1, 0, 5]],
    ] as const) {
      tf.tidy(() => {
        const x = tf.randomNormal([rows, 6], 0, 1, "float32", rows) as tf.Tensor2D;
        const at = tf.tensor1d([...wanted], "int32");
        const outputs = graph.run([x, at, weight, vector], { rows, columns: wanted.length });
        run(x, at, weight, vector as tf.Tensor1D).forEach((expected, i) => {
          expect(outputs[i]!.shape).toEqual(expected.shape);
          const far = tf.max(tf.abs(tf.sub(outputs[i]!, expected))).dataSync()[0]!;
          expect(far).toBeLessThan(1e-6);
        });
      });
      tf.tidy(() => weight.assign(tf.mul<tf.Tensor2D>(weight, -2)));
    }
    expect(tf.memory().numTensors).toBe(before);
    graph.dispose();
    tf.dispose([weight, vector]);
  });

  it("takes its open shapes from the sizes of each call, and leaves no files", () => {
    const traced = trace(
      ([x]) => [turned(x!, primes)],
      [{ type: "float32", shape: [primes.rows, primes.columns * 3] }],
      primes,
    );
    const folder = mkdtempSync(join(tmpdir(), "graphs-"));
    const old = process.env["TMPDIR"];
    process.env["TMPDIR"] = folder;
    const graph = new GraphFunction(graphBackend()!, traced);
    expect(readdirSync(folder)).toEqual([]);
    if (old === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = old;
    rmSync(folder, { recursive: true });
    for (const sizes of [
      { rows: 2, columns: 5 },
      { rows: 1, columns: 1 },
      { rows: 7, columns: 2 },
    ]) {
      const x = tf.randomNormal([sizes.rows, sizes.columns * 3]);
      const [got] = graph.run([x], sizes);
      expect(got!.arraySync()).toEqual(turned(x, sizes).arraySync());
    }
    graph.dispose();
  });
});
