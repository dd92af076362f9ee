import { afterEach, expect, it, vi } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { measureInBatches } from "../../evaluations/kit/measure-in-batches.ts";
import { everySteps } from "../../schedule/triggers.ts";
import { defineEvaluation } from "../../evaluations/kit/define.ts";
import type { AnyEvaluation, MeasureContext, Row, SessionOptions } from "@periodic-eval/contracts";
import { type FakeModel, manualClock, type ManualClock } from "@periodic-eval/testing";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "../loop/session.ts";

/** 256 items in calls of 64; `seconds` returns the seconds per item at each call. */
function inCallsOf64(clock: ManualClock, seconds: () => number): AnyEvaluation {
  return defineEvaluation({
    name: "calls",
    version: "1",
    needs: ["generate"],
    items: () => Array.from({ length: 256 }, (_, i) => ({ id: `q${i}` })),
    measure: (model, items, context) =>
      measureInBatches(items, context, async (some) => {
        await model.generate([], { signal: context.signal });
        clock.advance(some.length * seconds());
        return some;
      }),
    metrics: ({ rate }) => ({ all: rate(() => true) }),
  }) as AnyEvaluation;
}

async function train(evaluation: AnyEvaluation, clock: ManualClock, changes: Partial<SessionOptions>) {
  const toy = toyTraining();
  const callback = new PeriodicCallback(evaluation, { schedule: [everySteps(2)] });
  const { maxSteps = 6 } = changes;
  const options = { ...toy.options([callback], { clock: clock.seconds }), ...changes, maxSteps };
  await withSession(options, async (session) => {
    for (let step = 0; step < maxSteps!; step++) {
      toy.step();
      clock.advance(100);
      await session.stepEnd();
    }
  });
  return { toy, found: await toy.store.list() };
}

it("keeps a window between start and end within its seconds, with the first items and a reason", async () => {
  const clock = manualClock();
  const budget = { overheadPercent: null, secondsPerWindow: 10 };
  const { found } = await train(
    inCallsOf64(clock, () => 0.1),
    clock,
    { budget },
  );
  // 0.1 s per item: 90 items in the planned 9 s.
  expect(found.map(({ step, status, timing }) => [step, status, timing.items])).toEqual([
    [0, "complete", 256],
    [2, "partial", 90],
    [4, "partial", 90],
    [6, "complete", 256],
  ]);
  expect(found[1]!.reason).toBe(
    "10 s are left of the 10 s of a window; a whole measurement needs 25.6 s; 90 of 256 rows",
  );
  expect(found[0]!.timing.governor).toBe("whole, 256 items: the start is never reduced");
  expect(found[1]!.timing.governor).toMatch(/^90 of 256 items: 10 s are left of the 10 s of a window; /);
  expect(found[1]!.timing.budget).toEqual({ limit: "seconds_per_window", reduced: true });
});

it("keeps the rows that were measured before a deadline", async () => {
  const clock = manualClock();
  let isSlow = false;
  const budget = { overheadPercent: null, secondsPerWindow: 30 };
  const evaluation = inCallsOf64(clock, () => (isSlow ? 0.2 : 0.1));
  const toy = toyTraining();
  const callback = new PeriodicCallback(evaluation, { schedule: [everySteps(2)] });
  const session = openSession({
    ...toy.options([callback], { clock: clock.seconds, maxSteps: 6 }),
    budget,
  });
  await session.begin();
  isSlow = true;
  for (let step = 0; step < 2; step++) {
    clock.advance(100);
    await session.stepEnd();
  }
  await session.close();
  // All 256 were expected in 25.6 s; at 0.2 s per item the third call of 64 ends after 30 s.
  expect((await toy.store.list()).at(-1)).toMatchObject({
    step: 2,
    status: "partial",
    reason: "its time was up; 192 of 256 rows",
    timing: {
      items: 192,
      governor: expect.stringMatching(/^192 of 256 items: no limit on overhead; a whole measurement needs /),
    },
  });
});

it("records a measurement that does not fit as skipped, with the reason", async () => {
  const clock = manualClock();
  const { found } = await train(
    inCallsOf64(clock, () => 1),
    clock,
    { budget: { overheadPercent: 50 } },
  );
  expect(found.map(({ step, status }) => [step, status])).toEqual([
    [0, "complete"],
    [2, "skipped"],
    [4, "skipped"],
    [6, "complete"],
  ]);
  // 50 % of 6 · 100 s, less 256 s used and 256 s kept.
  expect(found[1]!.reason).toBe(
    "no time is left before the end in the budget (60 s, or 50 % of the training if that is more); the smallest measurement needs 52 s (2 planned)",
  );
});

it("reserves the fixed seconds of a call before it measures a further portion, now and at the end", async () => {
  const clock = manualClock();
  // 40 s per call of measure, 1 s per item, progress every 10: the start does not show which of its 140 s recur.
  const evaluation: AnyEvaluation = {
    ...inCallsOf64(clock, () => 1),
    items: () => Array.from({ length: 100 }, (_, i) => ({ id: `q${i}` })),
    async measure(model: FakeModel, items: readonly Row[], { signal, progress }: MeasureContext) {
      clock.advance(40);
      let done = 0;
      while (done < items.length && !signal.aborted) {
        const last = Math.min(done + 10, items.length);
        clock.advance(last - done);
        done = last;
        await model.generate([], { signal: new AbortController().signal });
        progress(done);
      }
      return items.slice(0, done);
    },
  };
  const { found } = await train(evaluation, clock, { maxSteps: 10, budget: { overheadPercent: 50 } });
  // 140 + (40 + 58) + (40 + 77) + 140 = 495 of 500 s; the 58 are not continued, because that would cost 40 s more.
  expect(found.map(({ timing }) => timing.items)).toEqual([100, 58, 0, 77, 0, 100]);
});

it("learns no cost per item from a measurement without rows", async () => {
  const clock = manualClock();
  const none: AnyEvaluation = {
    ...inCallsOf64(clock, () => 1),
    async measure() {
      clock.advance(5);
      return [];
    },
  };
  const { found } = await train(none, clock, { budget: { overheadPercent: 50 } });
  expect(found.map(({ reason }) => reason?.replace(/.*; /, ""))).toEqual([
    "0 of 256 rows",
    "the cost per item is not known yet",
    "the cost per item is not known yet",
    "0 of 256 rows",
  ]);
});

it("does not extrapolate from a first step that takes ten times as long as the others", async () => {
  const clock = manualClock();
  const toy = toyTraining();
  // 31 s at the start and at the end are more than 42 % of 50 + 19 · 5 s.
  const evaluation = inCallsOf64(clock, () => 31 / 256);
  const callback = new PeriodicCallback(evaluation, { schedule: [everySteps(1)] });
  const options = toy.options([callback], {
    clock: clock.seconds,
    maxSteps: 20,
    budget: { overheadPercent: 42 },
  });
  await withSession(options, async (session) => {
    for (let step = 0; step < 20; step++) {
      clock.advance(step === 0 ? 50 : 5);
      await session.stepEnd();
    }
  });
  const between = (await toy.store.list()).filter(({ step }) => step > 0 && step < 20);
  expect(between.map(({ status }) => status)).toEqual(Array<string>(19).fill("skipped"));
});

it("continues from the costs in the snapshots after a resume", async () => {
  const clock = manualClock();
  const toy = toyTraining();
  const evaluation = inCallsOf64(clock, () => 0.1);
  const callbacks = () => [new PeriodicCallback(evaluation, { schedule: [everySteps(2)] })];
  const options = () => ({
    ...toy.options(callbacks(), { clock: clock.seconds, maxSteps: 6 }),
    budget: { overheadPercent: 10 },
  });
  const first = openSession(options());
  for (let step = 0; step < 3; step++) {
    clock.advance(100);
    await first.stepEnd();
  }
  const resume = await first.save();
  await first.close();
  await withSession({ ...options(), resume }, async (session) => {
    for (let step = 3; step < 6; step++) {
      clock.advance(100);
      await session.stepEnd();
    }
  });
  const found = await toy.store.list();
  // The start came late, with step 1: 3 · 25.6 s of 600 s exceed 10 %, so measurements in between are cut or skipped.
  const overhead = found.at(-1)!.timing.overhead_percent!;
  expect(overhead).toBeLessThanOrEqual(10 + 2);
  expect(found.find(({ step }) => step === 4)!.timing.governor).toContain("before the end");
});

afterEach(() => vi.restoreAllMocks());

it("skips measurements while memory is low", async () => {
  vi.spyOn(process, "availableMemory").mockReturnValue(1000);
  const toy = toyTraining();
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [] });
  const options = toy.options([callback], { budget: { minFreeBytes: 1001 }, maxSteps: 1 });
  await withSession(options, async (session) => void (await session.stepEnd()));
  expect((await toy.store.list()).map(({ status, reason }) => [status, reason])).toEqual(
    [0, 1].map(() => ["skipped", "1000 bytes of memory are free, less than the 1001 of budget.minFreeBytes"]),
  );
});

it("saves the weights of a window once, inside the guards, and warns if saving fails", async () => {
  const toy = toyTraining();
  const callbacks = ["a", "b"].map(
    (id) => new PeriodicCallback(toyEvaluation({ name: id }), { schedule: [] }),
  );
  const saved: number[] = [];
  const saveAtFiring: SessionOptions["saveAtFiring"] = async ({ progress }) => {
    saved.push(progress.step);
    if (progress.step > 0) throw new Error("the disk is full");
    return "adapters/step_0";
  };
  await withSession(toy.options(callbacks, { saveAtFiring, maxSteps: 1 }), async (session) => {
    toy.step();
    await session.stepEnd();
  });
  expect(saved).toEqual([0, 1]);
  expect((await toy.store.list()).map((snapshot) => snapshot.saved)).toEqual([
    { path: "adapters/step_0", error: null },
    { path: "adapters/step_0", error: null },
    { path: null, error: "the disk is full" },
    { path: null, error: "the disk is full" },
  ]);
  expect(toy.warnings()).toEqual(["saveAtFiring: the weights of step 1 are not saved: the disk is full"]);
});

it("gives a limit that is undefined its default", async () => {
  const itemsWith = async (budget: object) => {
    const clock = manualClock();
    const { found } = await train(
      inCallsOf64(clock, () => 1),
      clock,
      { budget },
    );
    return found.map(({ status, timing }) => [status, timing.items]);
  };
  const limits = ["overheadPercent", "graceSeconds", "secondsPerWindow"];
  const unset = Object.fromEntries(limits.map((name) => [name, undefined]));
  expect(await itemsWith(unset)).toEqual(await itemsWith({}));
});
