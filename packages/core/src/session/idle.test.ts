import { expect, test } from "vitest";
import { PeriodicCallback } from "../callback/periodic.ts";
import { everyPercent } from "../schedule/triggers.ts";
import { toyEvaluation, toyTraining } from "../testing/toy-training.ts";
import { openSession } from "./session.ts";

test("a step that asks for nothing is done when stepEnd returns: no turn of the event loop, no timer", async () => {
  const toy = toyTraining();
  const seen: number[] = [];
  const watching = {
    id: "watching",
    onStepEnd: ({ progress }: { progress: { step: number } }) => void seen.push(progress.step),
  };
  const idle = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)] });
  const session = openSession(toy.options([idle, watching], { maxSteps: 1_000_000 }));
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

test("idle callbacks cost less than 0.1 % of a step of 50 ms", async () => {
  const toy = toyTraining();
  const idle = ["a", "b", "c"].map(
    (id) => new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)], id }),
  );
  const steps = 500;
  const session = openSession(toy.options(idle, { maxSteps: 1_000_000 }));
  await session.begin();
  const times: number[] = [];
  for (let batch = 0; batch < 30; batch++) {
    const began = performance.now();
    for (let step = 0; step < steps; step++) await session.stepEnd();
    times.push((performance.now() - began) / steps);
  }
  // The fastest of thirty short batches: what the code costs, not what else the machine does.
  const milliseconds = Math.min(...times);
  await session.close();
  // 0.1 % of 50 ms.
  expect(milliseconds).toBeLessThan(0.05);
});
