import * as tf from "@tensorflow/tfjs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { tfjsGuards } from "@periodic-eval/tfjs";
import { tinyLM, type TinyLM } from "../../../../tfjs/src/causal-lm/tiny-lm.test-data.ts";
import { openSession } from "./session.ts";

let lm: TinyLM;
beforeAll(async () => {
  await tf.setBackend("cpu");
  lm = tinyLM();
});
afterAll(() => lm.dispose());

it("completes a step without requests before stepEnd returns, without a turn of the event loop or a timer", async () => {
  const toy = toyTraining();
  const seen: number[] = [];
  const watching = {
    id: "watching",
    onStepEnd: ({ progress }: { progress: { step: number } }) => void seen.push(progress.step),
  };
  const idle = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)] });
  // The guards around every hook in a training with TensorFlow.js.
  const guards = tfjsGuards(lm);
  const session = openSession(toy.options([idle, watching], { maxSteps: 1_000_000, guards }));
  await session.begin();
  const first = session.stepEnd();
  expect(seen).toEqual([1]);
  // The next call would throw if the first were still running.
  const second = session.stepEnd({ metrics: { loss: 1 } });
  expect(seen).toEqual([1, 2]);
  expect(await Promise.all([first, second])).toEqual([
    { stop: null, save: null },
    { stop: null, save: null },
  ]);
  await session.close();
});
