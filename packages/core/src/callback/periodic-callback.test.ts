import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { advance, crossings } from "../schedule/crossings.ts";
import { everyPercent, everySteps, atEnd, atStart } from "../schedule/triggers.ts";
import { callbackConformance } from "@periodic-eval/testing";
import { toyEvaluation, toyTraining } from "../../../testing/src/toy-training.test-data.ts";
import { withSession } from "../session/loop/session.ts";
import { PeriodicCallback } from "./periodic-callback.ts";
import { PeriodicCapabilityCallback } from "../config/callbacks.ts";

test("measures start and end by default, once each even when the schedule names them", () => {
  const triggers = (options: object) =>
    new PeriodicCallback(toyEvaluation(), { schedule: [everySteps(5)], ...options }).triggers;
  expect(triggers({})).toEqual([atStart(), everySteps(5), atEnd()]);
  expect(triggers({ atStart: false })).toEqual([everySteps(5), atEnd()]);
  expect(triggers({ atEnd: false })).toEqual([atStart(), everySteps(5)]);
  expect(triggers({ schedule: [atEnd(), atStart()] })).toEqual([atEnd(), atStart()]);
});

test("uses the evaluation's name as its default id", () => {
  expect(new PeriodicCallback(toyEvaluation(), { schedule: [] }).id).toBe("toy");
  expect(new PeriodicCallback(toyEvaluation(), { schedule: [], id: "other" }).id).toBe("other");
});

test("rejects wrong options at construction", () => {
  const made =
    (options: object, name = "toy") =>
    () =>
      new PeriodicCallback(toyEvaluation({ name }), { schedule: [], ...options });
  expect(made({ shedule: [] })).toThrow('Did you mean "schedule"?');
  expect(made({ schedule: [{ every: 0, unit: "percent" }] })).toThrow(
    'PeriodicCallback "toy" options.schedule',
  );
  expect(made({ schedule: [{ every: Number.NaN, unit: "steps" }] })).toThrow("got NaN");
  expect(made({}, "my evaluation")).toThrow(
    'PeriodicCallback "my evaluation" options.id: got "my evaluation"',
  );
  expect(made({ id: "a/b" })).toThrow('got "a/b"');
  expect(made({ on: "bse" })).toThrow('options.on: got "bse", expected "model" or "base".');
  expect(made({ atStart: "false" })).toThrow('atStart: got "false", expected true or false');
  expect(made({ optional: true })).toThrow('the unknown option "optional"');
});

test("warns once and measures only at the end when maxSteps is unknown", async () => {
  const toy = toyTraining();
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(20)] });
  await withSession(toy.options([callback], { maxSteps: null }), async (session) => {
    await session.begin();
    for (let step = 0; step < 7; step++) {
      toy.step();
      await session.stepEnd();
    }
  });
  expect((await toy.store.list()).map(({ step, crossed, pct }) => [step, crossed, pct])).toEqual([
    [0, ["start"], null],
    [7, ["end"], null],
  ]);
  expect(toy.warnings()).toEqual([
    'callback "toy": maxSteps is unknown, so triggers in percent of the phase measure at its end only',
  ]);
});

const context = {
  phase: "train",
  progress: { step: 0, maxSteps: 8, epoch: 0, elapsedSeconds: 0, ended: false },
  previous: null,
  signal: new AbortController().signal,
  metrics: {},
  rows: async () => [],
  requestStop() {},
  requestSave() {},
  report() {},
  warn() {},
};

test("excludes the baseline from the number of planned measurements", async () => {
  const requested: unknown[] = [];
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(25)] });
  void callback.onTrainBegin({
    ...context,
    measure: (request) => void requested.push(request.plannedComparisons),
  });
  expect(requested).toEqual([4]);
});

test("requests a measurement exactly where a threshold is crossed, however the phase is cut into steps", () => {
  const trigger = fc.oneof(
    fc.integer({ min: 1, max: 100 }).map(everyPercent),
    fc.integer({ min: 1, max: 7 }).map(everySteps),
    fc.integer({ min: 1, max: 5 }).map((every) => ({ every, unit: "seconds" as const })),
  );
  const move = fc.record({
    steps: fc.integer({ min: 0, max: 6 }),
    maxSteps: fc.constantFrom(null, 20, 20, 20, 13, 31),
  });
  fc.assert(
    fc.property(
      fc.array(trigger, { minLength: 1, maxLength: 3 }),
      fc.array(move, { maxLength: 12 }),
      (schedule, moves) => {
        const callback = new PeriodicCallback(toyEvaluation(), { schedule });
        let previous = null;
        let progress = advance(null, { step: 0, maxSteps: 20, epoch: 0, elapsedSeconds: 0, ended: false });
        for (const { steps, maxSteps } of moves) {
          previous = progress;
          progress = advance(previous, {
            ...previous,
            step: previous.step + steps,
            maxSteps,
            elapsedSeconds: previous.elapsedSeconds + steps / 2,
          });
          const requested: unknown[] = [];
          callback.onStepEnd({
            ...context,
            previous,
            progress,
            measure: (request) => void requested.push(...request.crossed),
          });
          expect(requested).toEqual(crossings(callback.triggers, previous, progress));
        }
      },
    ),
  );
});

test("gives PeriodicCapabilityCallback a default id and schedule, and rejects invalid options", () => {
  const callback = new PeriodicCapabilityCallback({ questions: "questions.jsonl" });
  expect(callback.id).toBe("capability");
  expect(callback.triggers).toEqual([atStart(), everyPercent(20), atEnd()]);
  expect(callback.asks[0]!.needs).toContain("nextToken");
  expect(() => new PeriodicCapabilityCallback({ question: "q" } as never)).toThrow(
    'Did you mean "questions"?',
  );
  const every10 = new PeriodicCapabilityCallback({
    questions: "q",
    schedule: [everyPercent(10)],
    method: "cloze",
    id: "c",
    atEnd: false,
  });
  expect([every10.id, every10.triggers, every10.asks[0]!.needs]).toEqual([
    "c",
    [atStart(), everyPercent(10)],
    ["logLikelihoods"],
  ]);
});

describe("conformance", () => {
  const make = () => new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(30), everySteps(7)] });
  for (const check of callbackConformance(make)) test(check.name, check.run);
});
