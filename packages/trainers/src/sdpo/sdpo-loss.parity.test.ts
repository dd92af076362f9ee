import { readFileSync } from "node:fs";
import * as tf from "@tensorflow/tfjs-core";
import { useBackend } from "@periodic-eval/models";
import { describe, expect, it } from "vitest";
import { expectClose } from "../../../testing/src/expect-close.test-data.ts";
import { findFixtures, reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { isThere, nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { sdpoLossSum, type SDPOLossOptions } from "./sdpo-loss.ts";

interface Case {
  readonly alpha: number;
  readonly is_clip: number;
  readonly kl_reg_weight: number;
  readonly kl_form: SDPOLossOptions["klForm"];
  readonly student_logits: number[][][];
  readonly teacher_logprobs: number[][][];
  readonly teacher_indices: number[][][];
  readonly base_logprobs: number[][];
  readonly old_student_logprobs: number[][];
  readonly response_ids: number[][];
  readonly response_mask: number[][];
  readonly expected: {
    readonly loss: number;
    readonly distill_loss: number;
    readonly kl_reg: number;
    readonly mean_is_ratio: number;
    readonly clip_fraction: number;
    readonly grad_student_logits: number[][][];
  };
}

const files = findFixtures(/^losses\/[^/]*sdpo[^/]*\.json$/);
if (files.length === 0) reportMissing("losses/*sdpo*.json");
const cases = files.flatMap(
  (file) => (JSON.parse(readFileSync(file, "utf8")) as { readonly cases: readonly Case[] }).cases,
);
const backends = ["wasm", "cpu", nativeBackend];

/**
 * A log-ratio d, which is clamped to ±20, enters as exp(d): its rounding becomes a relative error of the same size. float32
 * numbers near 20 are 1.9e-6 apart. In cases with losses from 0.2 to 3e7 the largest relative difference is 1.5e-6.
 */
const tolerance = { absolute: 5e-6, relative: 3e-6 };

/** The file's numbers come from float32 PyTorch. Rows that its mask excludes are left out here. */
describe.skipIf(cases.length === 0)("the SDPO loss", () => {
  describe.each(backends)("on %s", (backend) => {
    it.runIf(isThere(backend)).each(cases.map((one, i) => [i, one.alpha, one.kl_form, one] as const))(
      "equals the reference in case %i, alpha %d, %s: loss, parts, gradient; and leaves no tensor",
      async (_number, alpha, klForm, one) => {
        await useBackend({ backend });
        const isScored = one.response_mask.flat().map((mask) => mask > 0);
        const count = isScored.filter(Boolean).length;
        const rowsOf = <T>(rows: readonly (readonly T[])[]): T[] => rows.flat().filter((_, i) => isScored[i]);
        const before = tf.memory().numTensors;
        const scored = {
          targets: tf.tensor1d(rowsOf(one.response_ids), "int32"),
          oldLogProbs: tf.tensor1d(rowsOf(one.old_student_logprobs)),
          baseLogProbs: tf.tensor1d(rowsOf(one.base_logprobs)),
          teacher: {
            logProbs: tf.tensor2d(rowsOf(one.teacher_logprobs)),
            ids: tf.tensor2d(rowsOf(one.teacher_indices), undefined, "int32"),
          },
        };
        const options = { alpha, isClip: one.is_clip, klRegWeight: one.kl_reg_weight, klForm };
        const logits = tf.tensor2d(rowsOf(one.student_logits));
        let sums: Readonly<Record<string, tf.Scalar>> = {};
        const { value, grad } = tf.valueAndGrad((x) => {
          const found = sdpoLossSum(x as tf.Tensor2D, scored, options);
          sums = found.sums;
          return found.loss;
        })(logits);
        const { grad_student_logits, loss, ...parts } = one.expected;
        expectClose(value.dataSync()[0]! / count, loss, tolerance, "loss");
        for (const [name, expected] of Object.entries(parts))
          expectClose(sums[name]!.dataSync()[0]! / count, expected, tolerance, name);
        const [gradient, width] = [grad.dataSync(), logits.shape[1]];
        let row = 0;
        for (const [i, expected] of grad_student_logits.flat().entries()) {
          const at = isScored[i] ? row++ * width : null;
          for (const [token, number] of expected.entries()) {
            const got = at === null ? 0 : gradient[at + token]! / count;
            expectClose(got, number, tolerance, `gradient of position ${i}, token ${token}`);
          }
        }
        // Without a tape the value is the same, and no gradient is computed.
        const plain = sdpoLossSum(logits, scored, options);
        expect(plain.loss.dataSync()).toEqual(value.dataSync());
        tf.dispose([logits, scored, sums, value, grad, plain.loss, plain.sums]);
        expect(tf.memory().numTensors).toBe(before);
      },
    );
  });
});
