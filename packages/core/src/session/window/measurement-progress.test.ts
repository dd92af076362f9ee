import * as tf from "@tensorflow/tfjs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { inMemory } from "@periodic-eval/tfjs";
import { tinyLM, type TinyLM } from "../../../../tfjs/src/causal-lm/tiny-lm.test-data.ts";
import { fakeTokenizer } from "@periodic-eval/testing";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { countTokens } from "./measurement-progress.ts";
import { measure } from "./measure.ts";

let lm: TinyLM;
beforeAll(async () => {
  await tf.setBackend("cpu");
  lm = tinyLM();
});
afterAll(() => lm.dispose());

const signal = new AbortController().signal;

it("counts the tokens of every ability, and those of the base", async () => {
  const { model, tokens } = countTokens(inMemory({ ...lm, base: lm }, fakeTokenizer()));
  expect(tokens()).toBeNull();
  // One token per character: "abc" is read.
  await model.nextToken!([{ prompt: { text: "abc" }, candidates: [98] }], { signal });
  expect(tokens()).toBe(3);
  // "ab" and "cd"; the last token is scored but not read.
  await model.base!.logLikelihoods!([{ context: { text: "ab" }, continuation: "cd" }], { signal });
  expect(tokens()).toBe(3 + 3);
  const sampling = { maxNewTokens: 2, temperature: 0, seed: "s" };
  const [written] = await model.generate!([{ prompt: { text: "abcd" }, sampling }], { signal });
  expect(tokens()).toBe(6 + 4 + written!.ids!.length);
});

it("records the tokens of a measurement, or null if the engine does not count them", async () => {
  const { snapshot, rows } = await measure(toyEvaluation({ items: 2 }), inMemory(lm, fakeTokenizer()));
  expect(rows.length).toBe(2);
  // "question 0" and "question 1" are 10 tokens each; at most 4 more are generated.
  expect(snapshot.timing.tokens).toBeGreaterThan(20);
  expect(snapshot.timing.tokens).toBeLessThanOrEqual(28);
  const toy = toyTraining();
  expect((await measure(toyEvaluation(), toy.model)).snapshot.timing.tokens).toBeNull();
});
