import * as tf from "@tensorflow/tfjs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { toyEvaluation, toyTraining } from "../../testing/toy-training.ts";
import { tfjsGuards } from "../../tfjs/guards.ts";
import { tinyLM, type TinyLM } from "../../tfjs/tiny-lm.test-data.ts";
import { openSession } from "./session.ts";

let lm: TinyLM;
beforeAll(async () => {
  await tf.setBackend("cpu");
  lm = tinyLM();
});
afterAll(() => lm.dispose());

test("a step that asks for nothing is done when stepEnd returns: no turn of the event loop, no timer", async () => {
  const toy = toyTraining();
  const seen: number[] = [];
  const watching = {
    id: "watching",
    onStepEnd: ({ progress }: { progress: { step: number } }) => void seen.push(progress.step),
  };
  const idle = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)] });
  // Those that stand round every hook in a training with TensorFlow.js.
  const guards = tfjsGuards(lm);
  const session = openSession(toy.options([idle, watching], { maxSteps: 1_000_000, guards }));
  await session.begin();
  const first = session.stepEnd();
  expect(seen).toEqual([1]);
  // The next call would be refused while the first was not done.
  const second = session.stepEnd({ metrics: { loss: 1 } });
  expect(seen).toEqual([1, 2]);
  expect(await Promise.all([first, second])).toEqual([
    { stop: null, save: null },
    { stop: null, save: null },
  ]);
  await session.close();
});
