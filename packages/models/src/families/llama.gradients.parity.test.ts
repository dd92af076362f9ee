import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { openSafetensors } from "@periodic-eval/safetensors";
import { describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { companionOf, findFixtures, reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import { checkpointValues } from "../decoder/variables.ts";
import { testedBackends } from "../testing/backends.test-data.ts";
import { meanLoss } from "../testing/mean-loss.test-data.ts";

const goldens = findFixtures(/^training[^/]*\/full_ft[^/]*\.json$/);
if (goldens.length === 0) reportMissing("training*/full_ft*.json");

describe.each(goldens)("gradients of the mean loss of %s", (golden) => {
  it.each(testedBackends)("equal torch's on %s", async (backend) => {
    const { model: name, input_ids, labels, losses } = JSON.parse(readFileSync(golden, "utf8"));
    await useBackend({ backend });
    const model = await loadCausalLM(join(dirname(golden), name as string));
    const before = tf.memory().numTensors;
    const { value, grads } = tf.variableGrads(
      () => meanLoss(model, input_ids as number[][], labels as number[][]),
      [...model.trainables()],
    );
    // torch, float32
    expect(value.dataSync()[0]).toBeCloseTo(losses[0], 5);
    const file = await openSafetensors(companionOf(golden, /^full_ft.*grads_step0.*\.safetensors$/));
    expect(Object.keys(grads).length).toBe(file.tensors.size);
    for (const weight of model.weights()) {
      const expected = await file.read(weight.name);
      const gradient = tf.variable(grads[weight.name]!);
      const got = await checkpointValues({ ...weight, variable: gradient });
      gradient.dispose();
      const worst = got.reduce(
        (worst, value, i) => Math.max(worst, Math.abs(value - (expected[i] as number))),
        0,
      );
      expect(worst, weight.name).toBeLessThan(1e-4);
    }
    await file.close();
    tf.dispose([value, grads]);
    expect(tf.memory().numTensors).toBe(before);
    model.dispose();
  });
});
