import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { Snapshot } from "@periodic-eval/contracts";
import { everySteps } from "../../schedule/triggers.ts";
import {
  toyEvaluation,
  toyTraining,
  type ToyTraining,
} from "../../../../testing/src/toy-training.test-data.ts";
import { withSession } from "../loop/session.ts";

interface Steps {
  /** Called at each step, to change the weights or not. */
  readonly step: (toy: ToyTraining, step: number) => void;
  readonly rate?: (step: number) => number;
  readonly on?: "model" | "base";
}

/** Trains four steps, measured at each by two evaluations, one of which is graded in the background. */
async function train({ step, rate, on = "model" }: Steps) {
  const toy = toyTraining();
  const base = toy.model;
  const callbacks = ["first", "second"].map(
    (name) =>
      new PeriodicCallback(toyEvaluation({ name, graded: name === "second" }), {
        schedule: [everySteps(1)],
        on,
      }),
  );
  const options = toy.options(callbacks, {
    maxSteps: 4,
    ...(on === "base" && { model: { ...toy.model, base } }),
  });
  await withSession(options, async (session) => {
    for (let done = 0; done < 4; done++) {
      step(toy, done);
      await session.stepEnd(rate === undefined ? {} : { metrics: { learning_rate: rate(done) } });
    }
  });
  return { toy, snapshots: await toy.store.list() };
}

const warned = (snapshots: readonly Snapshot[]) =>
  snapshots.flatMap(({ id, step, warnings }) => warnings.map(({ kind }) => `${kind} ${id} ${step}`));

it("warns at the second measurement of a training that changes nothing, and at all later ones", async () => {
  const { toy, snapshots } = await train({ step: () => undefined });
  const at = [1, 2, 3, 4].flatMap((step) => [`first ${step}`, `second ${step}`]);
  expect(warned(snapshots)).toEqual(at.map((where) => `unchanged_weights ${where}`));
  const { warnings, paired } = snapshots.at(-1)!;
  expect(warnings).toEqual([
    {
      kind: "unchanged_weights",
      metrics: null,
      count: null,
      total: null,
      void: true,
      message: expect.stringContaining(
        "Training has changed no weight of the measured model from step 0 to step 4: nothing can be said about the training.",
      ) as string,
    },
  ]);
  expect(Object.values(paired.baseline!).every(({ verdict }) => verdict === null)).toBe(true);
  expect(toy.warnings().filter((line) => line.includes("changed no weight"))).toHaveLength(1);
});

it("is silent in a training that changes the weights, also if they return to those of the start", async () => {
  const changing = await train({ step: (toy) => toy.step() });
  expect(warned(changing.snapshots)).toEqual([]);
  const returning = await train({ step: (toy, done) => void (toy.weights = [5, 6, 7, 0][done]!) });
  expect(warned(returning.snapshots)).toEqual([]);
});

it("is silent while warm-up has a learning rate of 0, and warns at the end if all had", async () => {
  const warmUp = await train({ step: (toy, done) => done > 0 && toy.step(), rate: (done) => done / 4 });
  expect(warned(warmUp.snapshots)).toEqual([]);
  const never = await train({ step: () => undefined, rate: () => 0 });
  expect(warned(never.snapshots)).toEqual(["unchanged_weights first 4", "unchanged_weights second 4"]);
});

it("is silent about measurements of the base, which training does not change", async () => {
  const { snapshots } = await train({ step: () => undefined, on: "base" });
  expect(snapshots.length).toBe(10);
  expect(warned(snapshots)).toEqual([]);
});
