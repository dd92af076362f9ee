import { describe, expect, it, test } from "vitest";
import type { AnyEvaluation, Budget } from "@periodic-eval/contracts";
import { defineEvaluation } from "../evaluations/kit/define.ts";
import { everySteps } from "../schedule/triggers.ts";
import { openSession, withSession } from "../session/loop/session.ts";
import { callbackConformance } from "@periodic-eval/testing";
import {
  gate,
  toyEvaluation,
  toyTraining,
  type ToyTraining,
} from "../../../testing/src/toy-training.test-data.ts";
import { escalate, worse, earlyStopping, markBest } from "./reactions.ts";
import { PeriodicCallback } from "./periodic-callback.ts";

/** An evaluation of forty items; `right` says how many are right at each measurement. */
function scripted(right: readonly number[], graded: (() => Promise<void>) | null = null): PeriodicCallback {
  let measurement = 0;
  const evaluation = defineEvaluation({
    name: "scripted",
    version: "1",
    needs: ["generate"],
    items: () => Array.from({ length: 40 }, (_, i) => ({ id: `q${i}` })),
    async measure(_model, items) {
      const count = right[measurement++]!;
      return items.map(({ id }, i) => ({ id, isRight: i < count }));
    },
    ...(graded && {
      async grade(rows: readonly { readonly id: string; readonly isRight: boolean }[]) {
        await graded();
        return rows;
      },
    }),
    metrics: ({ rate }) => ({ accuracy: rate((row) => row.isRight, { higherIsBetter: true }) }),
  }) as AnyEvaluation;
  return new PeriodicCallback(evaluation, { schedule: [everySteps(1)] });
}

async function train(toy: ToyTraining, options: ReturnType<ToyTraining["options"]>) {
  const saves: string[] = [];
  const stop = await withSession(options, async (session) => {
    for (let step = 0; step < 6; step++) {
      toy.step();
      const control = await session.stepEnd();
      if (control.save !== null) saves.push(control.save);
      if (control.stop !== null) return control.stop;
    }
    return null;
  });
  return { stop, saves };
}

const watch = { id: "scripted", metric: "accuracy", mode: "max" } as const;

test("stops training after `patience` measurements that are not better by minDelta", async () => {
  // The best is step 1 (20 of 40 = 0.5); 21 of 40 is better by .025, less than .03. Steps 2, 3 and 4 are no better.
  const toy = toyTraining();
  const callbacks = [
    scripted([10, 20, 19, 21, 20, 40, 40]),
    earlyStopping({ ...watch, patience: 3, minDelta: 0.03 }),
  ];
  const { stop } = await train(toy, toy.options(callbacks, { maxSteps: 6 }));
  expect(stop).toBe(
    'accuracy of "scripted" was best at step 1 (0.5), and not better in 3 measurements since',
  );
  expect((await toy.store.list()).at(-1)!.step).toBe(4);
});

test("requests a checkpoint at each better measurement, and remembers the best", async () => {
  const toy = toyTraining();
  const best = markBest({ ...watch, mode: "min" });
  const { saves } = await train(toy, toy.options([scripted([10, 12, 8, 9, 4, 4, 7]), best], { maxSteps: 6 }));
  // Step 0 is best so far too, and needs no checkpoint.
  expect(saves).toEqual([
    'accuracy of "scripted" is best at step 2: 0.2',
    'accuracy of "scripted" is best at step 4: 0.1',
  ]);
  expect(best.best()).toEqual({ step: 4, value: 0.1, savedAt: 4 });
});

test("keeps the best value and the waiting count across a resume", async () => {
  const toy = toyTraining();
  const stopping = () => earlyStopping({ ...watch, patience: 3 });
  const first = openSession(toy.options([scripted([10, 20, 19]), stopping()], { maxSteps: 6 }));
  await first.begin();
  for (let step = 0; step < 2; step++) await first.stepEnd();
  const resume = JSON.parse(JSON.stringify(await first.save()));
  await first.close();
  const again = toy.options([scripted([18, 17, 40]), stopping()], { maxSteps: 6, resume });
  const stops = await withSession(again, async (session) => [
    (await session.stepEnd()).stop,
    (await session.stepEnd()).stop,
  ]);
  // The best, 20 of 40, was at step 1: 19, 18 and 17 of 40 follow at steps 2, 3 and 4.
  expect(stops.map((stop) => stop !== null)).toEqual([false, true]);
});

test.each<[string, Budget]>([
  ["without a ceiling", { overheadPercent: null }],
  ["under the default budget", { overheadPercent: 20, graceSeconds: 60 }],
])("escalates in the same window when the verdict is worse, %s", async (_, budget) => {
  const toy = toyTraining();
  const deep = toyEvaluation({ name: "deep" });
  const callbacks = [
    scripted([40, 40, 10, 10, 40, 40, 40]),
    escalate({ when: worse("scripted"), run: [deep] }),
  ];
  await train(toy, toy.options(callbacks, { maxSteps: 6, budget }));
  const found = await toy.store.list();
  // 40 of 40 against 10 of 40: exact McNemar, 30 discordant one way, p = 2 · 2⁻³⁰.
  expect(found.filter(({ id }) => id === "escalate-deep").map(({ step, status }) => [step, status])).toEqual([
    [2, "complete"],
    [3, "complete"],
  ]);
});

test("warns about a verdict that comes after the end of training", async () => {
  const toy = toyTraining();
  const { passed, open } = gate();
  const callback = scripted([40, 40, 40, 40, 40, 40, 10], () => passed);
  const more = escalate({ when: worse("scripted"), run: [toyEvaluation({ name: "deep" })] });
  await train(toy, {
    ...toy.options([callback, more, { id: "late", onTrainEnd: () => setTimeout(open, 0) && undefined }], {
      maxSteps: 6,
    }),
    onFailure: "throw",
  });
  expect(toy.warnings().join()).toContain('no further measurements for "scripted" of step 6');
});

test("rejects wrong options at construction", () => {
  expect(() => earlyStopping({ ...watch, patience: 0 })).toThrow("earlyStopping options.patience: got 0");
  expect(() => earlyStopping({ ...watch, patience: 1, minDelta: -1 })).toThrow(
    "earlyStopping options.minDelta: got -1",
  );
  expect(() => markBest({ ...watch, mode: "maximum" as "max" })).toThrow("markBest options.mode");
  expect(() => markBest({ ...watch, metrik: "a" } as typeof watch)).toThrow('Did you mean "metric"?');
  const deep = toyEvaluation({ name: "deep" });
  expect(() => escalate({ when: worse("a"), run: [deep, deep] })).toThrow("evaluations with unique names");
  expect(() => escalate({ when: worse("a"), run: [] })).toThrow("escalate options.run: got []");
});

describe("reactions keep the life cycle of callbacks", () => {
  const made = {
    earlyStopping: () => earlyStopping({ ...watch, patience: 2 }),
    markBest: () => markBest(watch),
    escalate: () => escalate({ when: worse("a"), run: [evaluation] }),
  };
  const evaluation = toyEvaluation({ name: "deep" });
  for (const [name, make] of Object.entries(made))
    for (const check of callbackConformance(make)) it(`${name} ${check.name}`, check.run);
});
