import { describe, expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { AnyEvaluation, Budget } from "@periodic-eval/contracts";
import { isDeadline } from "../../evaluations/kit/measure-in-batches.ts";
import { defineEvaluation } from "../../evaluations/kit/define.ts";
import { everyPercent, everySteps } from "../../schedule/triggers.ts";
import { manualClock, type ManualClock } from "@periodic-eval/testing";
import { toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { withSession } from "../loop/session.ts";
import { measurementsAhead, Learned } from "./learned.ts";
import { describePlan } from "./describe-plan.ts";

/** 50 items; each row takes one second. With `samples`, each item has that many rows, which the budget may reduce. */
function evaluationOf(clock: ManualClock, samples: number | null, slowness: () => number): AnyEvaluation {
  return defineEvaluation({
    name: "slow",
    version: "1",
    needs: ["generate"],
    ...(samples !== null && { samplesPerItem: samples, canReduceSamples: true }),
    items: () => Array.from({ length: 50 }, (_, i) => ({ id: `q${i}` })),
    async measure(_, items, { progress, signal, samples: range = { first: 0, end: 1 } }) {
      const drawn = Array.from({ length: range.end - range.first }, (_unused, i) => range.first + i);
      let done = 0;
      while (done < items.length && !isDeadline(signal)) {
        clock.advance(slowness() * drawn.length);
        progress((done += 1));
      }
      return items.slice(0, done).flatMap(({ id }) => drawn.map((sample) => ({ id: `${id}#${sample}` })));
    },
    metrics: ({ rate }) => ({ all: rate(() => true) }),
  }) as AnyEvaluation;
}

/** Trains 10 steps of `stepSeconds` and measures every `percent`; `slowness` multiplies the seconds of a row at a step. */
async function train(
  budget: Budget,
  stepSeconds: number,
  samples: number | null = null,
  slowness: (step: number) => number = () => 1,
  percent = 20,
) {
  const clock = manualClock();
  const toy = toyTraining();
  let step = 0;
  const plans: string[] = [];
  const logger = {
    name: "plans",
    event: (event: { readonly kind: string; readonly message?: string }) =>
      void (event.kind === "plan" && plans.push(event.message!)),
  };
  const callback = new PeriodicCallback(
    evaluationOf(clock, samples, () => slowness(step)),
    { schedule: [everyPercent(percent)] },
  );
  const options = toy.options([callback], { clock: clock.seconds, maxSteps: 10 });
  await withSession({ ...options, budget, loggers: [logger] }, async (session) => {
    while (step < 10) {
      step += 1;
      clock.advance(stepSeconds);
      await session.stepEnd();
    }
  });
  const found = await toy.store.list();
  return { plans, items: found.map(({ timing }) => timing.items), found };
}

describe("the grace", () => {
  it("measures everything in full while all of it takes no longer, and says so before training", async () => {
    const { plans, items, found } = await train({ graceSeconds: 320 }, 1);
    expect(items).toEqual([50, 50, 50, 50, 50, 50]);
    expect(plans).toEqual([
      'between start and end 4 measurements "slow" of 50 of 50 items; 300 s of measuring expected with start and end, within the 320 s that the budget always allows',
    ]);
    const within = { limit: "grace_seconds", reduced: false, grace_seconds: 320 };
    const budgets = [undefined, within, within, within, within, undefined];
    expect(found.map(({ timing }) => timing.budget)).toEqual(budgets);
  });

  it("lets a measurement take as much longer than expected as the others leave to spare", async () => {
    const slowAt = (step: number) => (step === 4 ? 3 : 1);
    expect((await train({ graceSeconds: 500 }, 1, null, slowAt)).items).toEqual([50, 50, 50, 50, 50, 50]);
  });

  it("is 60 seconds by default", async () => {
    const { items, found } = await train({}, 1);
    // Start and end take 100 s.
    expect(items).toEqual([50, 0, 0, 0, 0, 50]);
    expect(found[1]!.reason).toBe(
      "no time is left before the end in the budget (60 s, or 20 % of the training if that is more); the smallest measurement needs 10 s (4 planned)",
    );
    expect(found[1]!.timing.budget).toEqual({ limit: "grace_seconds", reduced: true, grace_seconds: 60 });
  });
});

describe("the plan", () => {
  it("states the overhead and the grace once the speed of training is known", () => {
    const plan = {
      remedy: null,
      ahead: [
        {
          id: "slow",
          size: { whole: 1, least: 1, step: 1, unit: "items" },
          measurements: 1,
          fixed: 0.5,
          perRow: 0,
        },
      ],
      shares: new Map([["slow", { measurements: 1, rows: 1 }]]),
      kept: 0.5,
      overheadPercent: 20,
      graceSeconds: 60,
    };
    expect(describePlan({ ...plan, windows: 1.1, projected: 0.875 })).toBe(
      'between start and end 1 measurement "slow" of 1 of 1 items; 2.1 s of measuring expected with start and end beside 0.875 s of training, within the 60 s that the budget always allows',
    );
    expect(describePlan({ ...plan, windows: 49, projected: 1000 })).toMatch(/5 % of 1000 s of training$/);
  });

  it("is not announced if no measurement between start and end is still to come", async () => {
    const { plans, found } = await train(
      {},
      1,
      null,
      (step) => {
        // The start has no cost, so that the plan waits for the first measurement after it.
        if (step === 0) throw new Error("boom");
        return 0.1;
      },
      50,
    );
    expect(found.map(({ status }) => status)).toEqual(["failed", "complete", "complete"]);
    expect(plans).toEqual([]);
  });

  it("reduces items first, evenly, and names the options that change it", async () => {
    const { plans, items, found } = await train({ graceSeconds: 0 }, 75);
    expect(found[1]!.timing.budget).toEqual({ limit: "overhead_percent", reduced: true });
    // 20 % of 750 s is 150 s: 50 s for four measurements, less what is held back.
    expect(items).toEqual([50, 12, 12, 12, 12, 50]);
    expect(plans).toEqual([
      "all measurements take 300 s. They stay under 20 % overhead if a step takes at least 150 s; with faster steps, measurements between start and end have fewer items or are skipped",
      'between start and end 4 measurements "slow" of 12 of 50 items; 148 s of measuring expected with start and end, 20 % of 750 s of training. To measure more, raise budget.overheadPercent (20 %) or budget.graceSeconds (0 s).',
    ]);
  });

  it("is announced once, after the needed step time, even if later measurements cost less", async () => {
    const slowAt = (step: number) => (step === 0 ? 2 : 1);
    const { plans, items } = await train({ graceSeconds: 330 }, 1, null, slowAt);
    expect(items).toEqual([50, 42, 42, 44, 45, 50]);
    expect(plans).toEqual([
      "all measurements take 600 s. They stay under 20 % overhead if a step takes at least 300 s; with faster steps, measurements between start and end have fewer items or are skipped",
      expect.stringMatching(
        /^between start and end 4 measurements "slow" of 15 of 50 items; 320 s .* To measure more/,
      ),
    ]);
  });

  it("counts no threshold that a shorter phase has crossed", () => {
    const clock = manualClock();
    const callback = new PeriodicCallback(
      evaluationOf(clock, null, () => 1),
      {
        schedule: [everyPercent(20), everySteps(3)],
      },
    );
    const learned = new Learned();
    learned.sizes.set("slow", { whole: 50, least: 10, step: 1, unit: "items" });
    const progress = { points: [], firstPortion: null, isCut: false, measureSeconds: 50 };
    learned.fromMeasurement({ id: "slow", progress, rows: 50, seconds: 50 });
    // 60 % of 10 steps are crossed: of 20 steps, those at 16 remain, and every third one.
    const at = {
      step: 6,
      maxSteps: 20,
      epoch: 0,
      elapsedSeconds: 6,
      ended: false,
      furthest: { step: 6, maxSteps: 10 },
    };
    const [wanted] = measurementsAhead({ at, callbacks: [callback], learned }, 20, new Set());
    expect(wanted!.measurements).toBe(new Set([16, 9, 12, 15, 18]).size);
  });

  it("takes fewer measurements, evenly spaced, if the smallest do not fit", async () => {
    const { plans, found } = await train({ graceSeconds: 0 }, 62);
    // 24 s, less what is held back: two of at least 10 items.
    expect(found.map(({ status }) => status)).toEqual([
      "complete",
      "skipped",
      "partial",
      "skipped",
      "partial",
      "complete",
    ]);
    expect(plans).toHaveLength(2);
    expect(plans[1]).toContain('2 of 4 measurements "slow"');
  });

  it("reduces the items of an evaluation that draws one sample of each", async () => {
    const { items } = await train({ graceSeconds: 0 }, 75, 1);
    expect(items).toEqual([50, 12, 12, 12, 12, 50]);
  });

  it("applies the limit of a window, and names it", async () => {
    const { plans, items } = await train({ graceSeconds: 600, secondsPerWindow: 40, inBlock: true }, 1);
    expect(items).toEqual([50, 36, 36, 36, 36, 50]);
    expect(plans).toEqual([expect.stringContaining('4 measurements "slow" of 36 of 50 items')]);
    expect(plans[0]).toMatch(
      /raise budget\.overhead_percent \(20 %\) or budget\.grace_seconds \(600 s\) or budget\.seconds_per_window \(40 s\)\.$/,
    );
  });

  it("reduces the completions of every item, and keeps all items, where an evaluation draws several", async () => {
    const { items, found } = await train({ graceSeconds: 0 }, 400, 5);
    // 800 s: 250 each for start and end, 300 for four measurements.
    expect(items.slice(1, -1)).toEqual([50, 50, 50, 100]);
    expect(found[1]!.timing.governor).toMatch(
      /^1 of 5 completions of each item: 2\d\d s are left before the end in the budget .*; a whole measurement needs 250 s \(4 planned\)$/,
    );
  });
});
