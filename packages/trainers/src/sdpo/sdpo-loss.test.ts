import * as tf from "@tensorflow/tfjs-core";
import { useBackend } from "@periodic-eval/models";
import { beforeAll, describe, expect, it } from "vitest";
import { sdpoLossSum, type SDPOLossOptions, type ScoredResponses } from "./sdpo-loss.ts";

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

const defaults: SDPOLossOptions = { alpha: 0.5, isClip: 5, klRegWeight: 0, klForm: "k3" };

/** Returns the loss and its gradient by the logits, row by row. */
function lossOf(
  rows: readonly (readonly number[])[],
  scored: {
    readonly targets: number[];
    readonly old: number[];
    readonly base?: number[];
    readonly teacher: readonly (readonly (readonly [id: number, logProb: number])[])[];
  },
  options: Partial<SDPOLossOptions> = {},
  bytes?: number,
) {
  return tf.tidy(() => {
    const given: ScoredResponses = {
      targets: tf.tensor1d(scored.targets, "int32"),
      oldLogProbs: tf.tensor1d(scored.old),
      baseLogProbs: scored.base ? tf.tensor1d(scored.base) : null,
      teacher: {
        ids: tf.tensor2d(
          scored.teacher.map((row) => row.map(([id]) => id)),
          undefined,
          "int32",
        ),
        logProbs: tf.tensor2d(scored.teacher.map((row) => row.map(([, logProb]) => logProb))),
      },
    };
    const kept: { sums?: Readonly<Record<string, tf.Scalar>> } = {};
    const { value, grad } = tf.valueAndGrad((x) => {
      const { loss, sums } = sdpoLossSum(x as tf.Tensor2D, given, { ...defaults, ...options }, bytes);
      kept.sums = sums;
      return loss;
    })(tf.tensor2d(rows.map((row) => [...row])));
    const parts = Object.entries(kept.sums!).map(([name, sum]) => [name, sum.dataSync()[0]!]);
    tf.dispose(kept.sums!);
    return {
      loss: value.dataSync()[0]!,
      gradient: [...grad.dataSync()],
      parts: Object.fromEntries(parts) as Record<string, number>,
    };
  });
}

const logs = (...probabilities: number[]) => probabilities.map(Math.log);

describe("sdpoLossSum", () => {
  it("equals the divergence of two tokens and its gradient by hand", () => {
    // Student 1/4, 1/4, 1/2; of the teacher's two tokens 0 and 1: q = (1/2, 1/2). Teacher t = (4/5, 1/5).
    // m = (0.65, 0.35); D = ½(0.8 ln(0.8/0.65) + 0.2 ln(0.2/0.35)) + ½(½ ln(0.5/0.65) + ½ ln(0.5/0.35)).
    const teacher = [[[0, Math.log(0.4)] as const, [1, Math.log(0.1)] as const]];
    const drawn = { targets: [2], old: [Math.log(0.5)], teacher };
    const { loss, gradient, parts } = lossOf([logs(0.25, 0.25, 0.5)], drawn);
    const [a, b] = [Math.log(0.5 / 0.65), Math.log(0.5 / 0.35)];
    const ofTeacher = 0.8 * Math.log(0.8 / 0.65) + 0.2 * Math.log(0.2 / 0.35);
    expect(loss).toBeCloseTo(0.5 * ofTeacher + 0.5 * (0.5 * a + 0.5 * b), 6);
    // gₖ = ½ log(qₖ/mₖ); dD/dx₀ = ½(g₀ − (g₀ + g₁)/2) = (g₀ − g₁)/4.
    const slope = (0.5 * a - 0.5 * b) / 4;
    expect(gradient).toEqual([expect.closeTo(slope, 6), expect.closeTo(-slope, 6), 0]);
    expect(parts).toEqual({
      distill_loss: expect.closeTo(loss, 6),
      mean_is_ratio: expect.closeTo(1, 6),
      clip_fraction: 0,
      student_log_prob: expect.closeTo(Math.log(0.5), 6),
    });
  });

  it("is 0 with gradient 0 if student and teacher agree", () => {
    const teacher = [[[2, Math.log(0.5)] as const, [0, Math.log(0.25)] as const]];
    const { loss, gradient } = lossOf([logs(0.25, 0.25, 0.5)], { targets: [1], old: [-1], teacher });
    expect(loss).toBeCloseTo(0, 6);
    for (const each of gradient) expect(each).toBeCloseTo(0, 6);
  });

  it("is weighted by the importance ratio, at most isClip, which has no gradient", () => {
    const teacher = [[[0, Math.log(0.4)] as const, [1, Math.log(0.1)] as const]];
    const at = (old: number, isClip = 5) =>
      lossOf([logs(0.25, 0.25, 0.5)], { targets: [2], old: [old], teacher }, { isClip });
    const one = at(Math.log(0.5));
    // Drawn with probability 1/4 and now 1/2: the ratio is 2.
    const two = at(Math.log(0.25));
    expect(two.parts).toMatchObject({ mean_is_ratio: expect.closeTo(2, 5), clip_fraction: 0 });
    expect(two.loss).toBeCloseTo(2 * one.loss, 6);
    expect(two.gradient[2]).toBe(0);
    expect(two.gradient[0]).toBeCloseTo(2 * one.gradient[0]!, 6);
    const clipped = at(Math.log(0.25), 1.5);
    expect(clipped.parts).toMatchObject({ mean_is_ratio: 1.5, clip_fraction: 1 });
    expect(clipped.loss).toBeCloseTo(1.5 * one.loss, 6);
  });

  it("covers only the drawn token for alpha 1, with −20 if it is not among the teacher's tokens", () => {
    const teacher = [[[0, Math.log(0.4)] as const], [[1, Math.log(0.4)] as const]];
    const rows = [logs(0.25, 0.25, 0.5), logs(0.25, 0.25, 0.5)];
    const drawn = { targets: [0, 0], old: [Math.log(0.25), Math.log(0.25)], teacher };
    const { loss, gradient } = lossOf(rows, drawn, { alpha: 1 });
    const s = Math.log(0.25);
    const [near, far] = [s - Math.log(0.4), s + 20];
    expect(loss).toBeCloseTo(near * s + far * s, 4);
    // (s − t)(one-hot − softmax), the first factor held fixed.
    for (const [i, apart] of [near, far].entries())
      for (const [token, share] of [0.75, -0.25, -0.5].entries())
        expect(gradient[3 * i + token]).toBeCloseTo(apart * share, 4);
  });

  it("adds the KL to the base by either estimate, and reports it even with weight 0", () => {
    const teacher = [[[2, Math.log(0.5)] as const, [0, Math.log(0.25)] as const]];
    // d = ln(1/2) for k3, ln 2 for claas: exp(d) − 1 − d = −½ + ln 2, and 1 − ln 2.
    const drawn = { targets: [1], old: logs(0.25), base: logs(0.125), teacher };
    const at = (klForm: "k3" | "claas", klRegWeight: number) =>
      lossOf([logs(0.25, 0.25, 0.5)], drawn, { klForm, klRegWeight });
    for (const [form, value, slope] of [
      ["k3", Math.LN2 - 0.5, 0.5],
      ["claas", 1 - Math.LN2, 1],
    ] as const) {
      const free = at(form, 0);
      expect(free.parts["kl_reg"]).toBeCloseTo(value, 6);
      expect(free.loss).toBeCloseTo(0, 6);
      const held = at(form, 2);
      expect(held.loss).toBeCloseTo(2 * value, 5);
      for (const [token, share] of [-0.25, 0.75, -0.5].entries())
        expect(held.gradient[token]).toBeCloseTo(2 * slope * share, 5);
    }
  });

  it("clamps log-ratios beyond 20, with no pull towards the base", () => {
    const teacher = [[[2, Math.log(0.5)] as const, [0, Math.log(0.25)] as const]];
    const [s, twenty] = [Math.log(0.25), Math.exp(20)];
    for (const [klForm, base, value] of [
      ["k3", s + 30, twenty - 21],
      ["k3", s - 30, Math.exp(-20) + 19],
      ["claas", s - 30, twenty - 21],
      ["claas", s + 30, Math.exp(-20) + 19],
    ] as const) {
      const drawn = { targets: [1], old: [s - 30], base: [base], teacher };
      const options = { klForm, klRegWeight: 1, isClip: 1e9 };
      const { parts, gradient } = lossOf([logs(0.25, 0.25, 0.5)], drawn, options);
      expect(parts["kl_reg"]! / value).toBeCloseTo(1, 5);
      expect(parts["mean_is_ratio"]! / twenty).toBeCloseTo(1, 5);
      // Only at the drawn token; the gradient of the divergence, 0 except for rounding, is at the others.
      expect(gradient[1]).toBeCloseTo(0, 6);
    }
  });

  it("gives the same result in chunks of rows", () => {
    const rows = Array.from({ length: 7 }, (_, i) =>
      Array.from({ length: 5 }, (_, j) => Math.sin(3 * i + j * j)),
    );
    const drawn = {
      targets: rows.map((_, i) => i % 5),
      old: rows.map((_, i) => -1 - i / 7),
      base: rows.map((_, i) => -2 + i / 7),
      teacher: rows.map((_, i) => [[i % 5, -0.5] as const, [(i + 2) % 5, -1.5] as const]),
    };
    for (const alpha of [0.3, 1]) {
      const whole = lossOf(rows, drawn, { alpha, klRegWeight: 0.4 });
      // 5 float32 per row: chunks of 3, 3 and 1 rows.
      const cut = lossOf(rows, drawn, { alpha, klRegWeight: 0.4 }, 60);
      expect(cut.loss).toBeCloseTo(whole.loss, 5);
      expect(cut.gradient).toEqual(whole.gradient);
      for (const [name, value] of Object.entries(whole.parts)) expect(cut.parts[name]).toBeCloseTo(value, 5);
    }
  });
});
