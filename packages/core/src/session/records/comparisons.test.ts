import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { Json, SessionOptions, SessionState } from "@periodic-eval/contracts";
import { everyPercent } from "../../schedule/triggers.ts";
import {
  toyEvaluation,
  toyTraining,
  type ToyTraining,
} from "../../../../testing/src/toy-training.test-data.ts";
import { withSession } from "../loop/session.ts";

const evaluationWith = (provenance: Json, items = 8) =>
  new PeriodicCallback(
    { ...toyEvaluation({ items }), provenance: () => provenance },
    { schedule: [everyPercent(20)] },
  );

async function trains(
  toy: ToyTraining,
  callback: PeriodicCallback,
  last: number,
  changes: Partial<SessionOptions> = {},
): Promise<SessionState> {
  return withSession(toy.options([callback], changes), async (session) => {
    await session.begin();
    while (session.progress.step < last) {
      toy.step();
      await session.stepEnd();
    }
    return session.save();
  });
}

const comparedWith = async (toy: ToyTraining, phase: string, step: number) => {
  const { paired } = (await toy.store.get({ phase, id: "toy", step }))!;
  return [paired.baseline?.["hit_rate"]?.step ?? null, paired.previous?.["hit_rate"]?.step ?? null];
};

it("does not compare measurements with different options, which would blame training for the option", async () => {
  const toy = toyTraining();
  const resume = await trains(toy, evaluationWith({ system: "omit" }), 3);
  await trains(toy, evaluationWith({ system: { text: "You are wrong" } }), 8, { resume });
  expect(await comparedWith(toy, "train", 2)).toEqual([0, 0]);
  expect(await comparedWith(toy, "train", 4)).toEqual([null, null]);
  expect(await comparedWith(toy, "train", 6)).toEqual([null, 4]);
  expect(toy.warnings()).toEqual([
    'comparison: train/toy/4 is not compared with train/toy/0: it has the option system "omit" (here {"text":"You are wrong"})',
  ]);
});

it("compares measurements with different items over the items that both have", async () => {
  const toy = toyTraining();
  const resume = await trains(toy, evaluationWith({ system: "omit", subsample: 8, example_prompt: "a" }), 3);
  await trains(toy, evaluationWith({ system: "omit", subsample: 5, example_prompt: "b" }, 5), 4, { resume });
  const { paired } = (await toy.store.get({ phase: "train", id: "toy", step: 4 }))!;
  expect(paired.baseline!["hit_rate"]).toMatchObject({ step: 0, n_pairs: 5 });
});

it("does not compare measurements whose answer keys changed under the same ids, or on another backend", async () => {
  const toy = toyTraining();
  const plain = toyEvaluation();
  const keyed = (key: string) =>
    new PeriodicCallback(
      { ...plain, items: async (model) => (await plain.items(model)).map((item) => ({ ...item, key })) },
      { schedule: [everyPercent(20)] },
    );
  const other = { ...toy.model, identity: { ...toy.model.identity, engine: "other" } };
  let resume = await trains(toy, keyed("a"), 3);
  resume = await trains(toy, keyed("b"), 5, { resume });
  await trains(toy, keyed("a"), 8, { resume, model: other });
  expect(await comparedWith(toy, "train", 2)).toEqual([0, 0]);
  expect(await comparedWith(toy, "train", 4)).toEqual([null, null]);
  expect(await comparedWith(toy, "train", 6)).toEqual([null, null]);
  expect(toy.warnings()).toEqual([
    "comparison: train/toy/4 is not compared with train/toy/0: it has other items (their content or answer keys)",
    "comparison: train/toy/6 is not compared with train/toy/0: it has the backend fake (here other)",
  ]);
});

it("compares with the start of an earlier phase that has the same setup", async () => {
  const second = async (provenance: Json) => {
    const toy = toyTraining();
    await trains(toy, evaluationWith({ system: "omit" }), 10, { phase: "coupling" });
    await trains(toy, evaluationWith(provenance), 10, { phase: "em", baseline: "run_start" });
    const { paired } = (await toy.store.get({ phase: "em", id: "toy", step: 2 }))!;
    return paired.baseline?.["hit_rate"]?.phase ?? null;
  };
  expect(await second({ system: "omit" })).toBe("coupling");
  expect(await second({ system: { text: "" } })).toBeNull();
});

it("marks comparisons as exploratory when a finished phase continues, because it has spent its error level", async () => {
  const toy = toyTraining();
  const callback = () => evaluationWith({ system: "omit" });
  const resume = await trains(toy, callback(), 10);
  await trains(toy, callback(), 14, { resume, maxSteps: 14 });
  const compared = async (step: number) =>
    (await toy.store.get({ phase: "train", id: "toy", step }))!.paired.baseline!["hit_rate"];
  expect(await compared(10)).toMatchObject({ alpha: expect.closeTo(0.01, 10) as number, exploratory: false });
  expect(await compared(14)).toMatchObject({ n_pairs: 8, alpha: null, exploratory: true });
});

it("compares measurements of which one has an option named as a method of every object", async () => {
  const toy = toyTraining();
  let measured = 0;
  const provenance = () => (measured % 2 === 1 ? { toString: null } : {});
  const evaluation = { ...toyEvaluation({ onMeasure: () => void measured++ }), provenance };
  const callback = new PeriodicCallback(evaluation, { schedule: [everyPercent(50)] });
  await trains(toy, callback, 10);
  expect((await toy.store.list()).map(({ step, status }) => [step, status])).toEqual([
    [0, "complete"],
    [5, "complete"],
    [10, "complete"],
  ]);
  expect(toy.warnings()[0]).toContain("the option toString null (here none)");
});
