import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { openSafetensors } from "@periodic-eval/safetensors";
import { describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import { checkpointValues } from "../decoder/variables.ts";
import { testedEngines } from "../testing/engines.ts";
import { fixtures } from "../testing/fixtures.ts";
import { meanLoss } from "../testing/mean-loss.ts";

const folder = join(fixtures, "training");
const present = existsSync(join(folder, "full_ft.json"));

describe.runIf(present)("gradients of the mean loss on tiny-llama", () => {
  it.each(testedEngines)("equal torch's on %s", async (backend) => {
    const { input_ids, labels, losses } = JSON.parse(readFileSync(join(folder, "full_ft.json"), "utf8"));
    await useBackend({ backend });
    const model = await loadCausalLM(join(folder, "tiny-llama"));
    const before = tf.memory().numTensors;
    const { value, grads } = tf.variableGrads(
      () => meanLoss(model, input_ids as number[][], labels as number[][]),
      [...model.trainables()],
    );
    // full_ft.json: losses[0], torch float32.
    expect(value.dataSync()[0]).toBeCloseTo(losses[0], 5);
    const file = await openSafetensors(join(folder, "full_ft_grads_step0.safetensors"));
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
