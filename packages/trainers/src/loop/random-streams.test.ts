import type { TrainableLM } from "@periodic-eval/tfjs";
import { beforeAll, expect, it } from "vitest";
import { trainDPO, trainSFT } from "../testing/recorded-training.test-data.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import { preferences, rows, tokenizer, useWasm } from "../testing/tiny-run.test-data.ts";

beforeAll(useWasm);

/** Creates a model that records the first number of the streams of each training pass. */
function drawing(): { readonly model: TrainableLM; readonly draws: number[] } {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize, dropout: 0.2 });
  const draws: number[] = [];
  const trainingLogits: TrainableLM["trainingLogits"] = (ids, at, random) => {
    draws.push(random("dropout")());
    return model.trainingLogits(ids, at, random);
  };
  return { model: { ...model, trainingLogits }, draws };
}

const config = { maxSteps: 3, batchSize: 2, gradientAccumulation: 3 };

it.each([
  ["SFT", (model: TrainableLM) => trainSFT({ model, dataset: rows(18), config })],
  [
    "DPO",
    (model: TrainableLM) =>
      trainDPO({
        model,
        dataset: preferences(18),
        reference: "copy",
        config: { ...config, disableDropout: false },
      }),
  ],
] as const)("draws other dropout for every micro-batch of %s", async (_, train) => {
  const { model, draws } = drawing();
  await train(model);
  // Three micro-batches in each of three steps; two numbers of 53 bits are equal once in 10¹⁴ runs.
  expect(draws.length).toBeGreaterThanOrEqual(9);
  expect(new Set(draws).size).toBe(draws.length);
  model.dispose();
});
