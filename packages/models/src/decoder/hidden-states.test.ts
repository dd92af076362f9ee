import * as tf from "@tensorflow/tfjs-core";
import { inMemory } from "@periodic-eval/tfjs";
import { beforeAll, expect, it } from "vitest";
import { fakeTokenizer } from "@periodic-eval/testing";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { unusualFamilies } from "../testing/tiny-config.test-data.ts";

beforeAll(async () => void (await useBackend({ backend: "cpu" })));

const signal = new AbortController().signal;

it.each(unusualFamilies)(
  "returns states of $family at the last token and averaged from a token",
  async ({ config }) => {
    const lm = createCausalLM(config, { seed: "a", initStd: 0.3 });
    const model = inMemory(lm, fakeTokenizer());
    const ids = [3, 1, 4, 1, 5];
    const states = lm.hiddenStates(tf.tensor2d(ids, [1, 5], "int32"));
    const all = await Promise.all(states.map(async (state) => state.array()));
    const last = all.length - 1;
    const before = tf.memory().numTensors;
    const [single, mean] = await model.hiddenStates!(
      [
        { prompt: { ids }, layers: [0, last] },
        { prompt: { ids }, layers: [last], from: 2 },
      ],
      { signal },
    );
    expect(tf.memory().numTensors).toBe(before);
    expect(single!.map((vector) => [...vector])).toEqual([all[0]![4]!, all[last]![4]!]);
    const expected = all[last]![4]!.map(
      (_, at) => (all[last]![2]![at]! + all[last]![3]![at]! + all[last]![4]![at]!) / 3,
    );
    mean![0]!.forEach((value, at) => expect(value).toBeCloseTo(expected[at]!, 5));
    tf.dispose(states);
    lm.dispose();
  },
);

it("refuses a layer that the model lacks and a token outside of the prompt", async () => {
  const lm = createCausalLM(unusualFamilies[0]!.config, { seed: "a" });
  const model = inMemory(lm, fakeTokenizer());
  const ask = (more: object) =>
    model.hiddenStates!([{ prompt: { ids: [1, 2] }, layers: [0], ...more }], { signal });
  await expect(ask({ layers: [99] })).rejects.toThrow("hiddenStates: got layer 99, expected 0 to");
  await expect(ask({ from: 2 })).rejects.toThrow(
    "hiddenStates: got from 2, expected a token of the prompt, 0 to 1",
  );
  lm.dispose();
});
