import fc from "fast-check";
import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import { defineEvaluation } from "../../evaluations/kit/define.ts";
import { isDeadline } from "../../evaluations/kit/measure-in-batches.ts";
import type { AnyEvaluation, Snapshot, Budget } from "@periodic-eval/contracts";
import { namedStream } from "../../random/streams.ts";
import { everyPercent } from "../../schedule/triggers.ts";
import { manualClock, type ManualClock } from "@periodic-eval/testing";
import { toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { withSession } from "../loop/session.ts";

interface Slow {
  readonly name: string;
  readonly items: number;
  /** Mean seconds per item, extra seconds of the first call, and fixed seconds per measurement. */
  readonly perItem: number;
  readonly firstCall: number;
  readonly perMeasurement: number;
  /** Relative scatter of the seconds per item, and by how much they grow until the end of training. */
  readonly noise: number;
  readonly drift: number;
  /** Items per call, after which progress is reported; all: it is reported once. */
  readonly perCall: number;
  readonly every: number;
}

/** Seconds of measuring so far, and the share of training that is done. */
interface Spent {
  seconds: number;
  done: number;
}

/** Measures by advancing the clock. */
function slowEvaluation(slow: Slow, clock: ManualClock, spent: Spent): AnyEvaluation {
  const { name, items, perItem, firstCall, perMeasurement, noise, drift, perCall } = slow;
  const random = namedStream(name);
  let isFirst = true;
  const pass = (seconds: number) => {
    clock.advance(seconds);
    spent.seconds += seconds;
  };
  return defineEvaluation({
    name,
    version: "1",
    needs: ["generate"],
    items: () => Array.from({ length: items }, (_, i) => ({ id: `q${i}` })),
    async measure(model, portion, { signal, progress }) {
      pass(perMeasurement + (isFirst ? firstCall : 0));
      isFirst = false;
      let done = 0;
      for (; done < portion.length && !isDeadline(signal); progress(done)) {
        for (const last = Math.min(done + perCall, portion.length); done < last; done++)
          pass(perItem * (1 + drift * spent.done) * (1 + noise * (2 * random() - 1)));
        await model.generate([], { signal: new AbortController().signal });
      }
      return portion.slice(0, done);
    },
    metrics: ({ rate }) => ({ all: rate(() => true) }),
  }) as AnyEvaluation;
}

interface Training {
  readonly steps: number;
  readonly stepSeconds: number;
  readonly firstStep: number;
  readonly noise: number;
  readonly drift: number;
}

async function simulate(slow: readonly Slow[], training: Training, budget: Budget) {
  const clock = manualClock();
  const toy = toyTraining();
  const random = namedStream("training");
  const spent = slow.map(() => ({ seconds: 0, done: 0 }));
  const callbacks = slow.map(
    (one, i) =>
      new PeriodicCallback(slowEvaluation(one, clock, spent[i]!), { schedule: [everyPercent(one.every)] }),
  );
  const options = toy.options(callbacks, { clock: clock.seconds, maxSteps: training.steps, budget });
  let trained = 0;
  await withSession({ ...options, budget }, async (session) => {
    for (let step = 0; step < training.steps; step++) {
      const seconds =
        training.stepSeconds *
        (1 + training.noise * (2 * random() - 1)) *
        (1 + (training.drift * step) / training.steps) *
        (step === 0 ? training.firstStep : 1);
      clock.advance(seconds);
      for (const one of spent) one.done = (step + 1) / training.steps;
      trained += seconds;
      await session.stepEnd();
    }
  });
  const evaluated = spent.reduce((sum, { seconds }) => sum + seconds, 0);
  return { snapshots: await toy.store.list(), trained, evaluated };
}

const isEdge = ({ step, max_steps }: Snapshot) => step === 0 || step === max_steps;

const slowArbitrary = fc
  .record({
    items: fc.integer({ min: 10, max: 300 }),
    perItem: fc.double({ min: 0.01, max: 2, noNaN: true }),
    firstCall: fc.constantFrom(0, 5, 30),
    perMeasurement: fc.constantFrom(0, 0.05),
    noise: fc.constantFrom(0, 0.2, 0.6),
    drift: fc.constantFrom(0, 0, -0.2, 0.2),
    perCall: fc.constantFrom(16, 64, 1000),
    every: fc.constantFrom(5, 10, 20, 25, 50),
  })
  .map((one) => ({
    ...one,
    // If progress is reported once, at the end, the fixed seconds cannot be separated from those per item.
    ...(2 * one.perCall > one.items
      ? { firstCall: 0, perMeasurement: 0 }
      : { perMeasurement: one.perMeasurement * one.perItem * one.items }),
  }));
const trainingArbitrary = fc.record({
  steps: fc.integer({ min: 20, max: 400 }),
  stepSeconds: fc.double({ min: 0.2, max: 5, noNaN: true }),
  firstStep: fc.constantFrom(1, 10),
  noise: fc.constantFrom(0, 0.3),
  drift: fc.constantFrom(0, 0, -0.2, 0.2),
});

const caseArbitrary = fc.record({
  slow: fc.array(slowArbitrary, { minLength: 1, maxLength: 3 }),
  training: trainingArbitrary,
  percent: fc.constantFrom(5, 10, 20),
  grace: fc.constantFrom(0, 60),
});

const seeds = [1, 2, 3, 4];
const runs = 15;

it(
  "holds the ceiling within 2 points and the grace within a tenth, uses 80 % of the seconds that fit, and measures start and end in full",
  { timeout: 600_000 },
  async () => {
    const short: string[] = [];
    const over: string[] = [];
    for (const seed of seeds) {
      const property = fc.asyncProperty(caseArbitrary, async ({ slow: some, training, percent, grace }) => {
        const slow = some.map((one, i) => ({ ...one, name: `slow${i}` }));
        const budget = { overheadPercent: percent, graceSeconds: grace };
        const { snapshots, trained, evaluated } = await simulate(slow, training, budget);
        const edges = snapshots.filter(isEdge);
        expect(edges.map(({ status }) => status)).toEqual(edges.map(() => "complete"));
        expect(edges.length).toBe(2 * slow.length);
        const ofEdges = edges.reduce((sum, { timing }) => sum + timing.measure_seconds, 0);
        const allowed = Math.max(grace, (percent / 100) * trained);
        const excess = evaluated - Math.max(allowed, ofEdges);
        if (excess > Math.max(0.02 * trained, 0.1 * grace))
          over.push(`seed ${seed}: ${excess.toFixed(1)} s over ${allowed.toFixed(1)} s`);

        const between = snapshots.filter((one) => !isEdge(one));
        const sizes = new Map(slow.map((one) => [one.name, one]));
        const secondsOf = (id: string, share: number) => {
          const { perItem, items, perMeasurement } = sizes.get(id)!;
          return perMeasurement + perItem * Math.ceil(share * items);
        };
        const whole = between.reduce((sum, { id }) => sum + secondsOf(id, 1), 0);
        // The smallest measurement is a fifth of its items, and cannot be divided.
        const least = Math.max(...between.map(({ id }) => secondsOf(id, 0.2)), 0);
        const fits = Math.min(whole, allowed - ofEdges);
        const used = evaluated - ofEdges;
        if (used < 0.8 * fits - least)
          short.push(
            `seed ${seed}: ${used.toFixed(1)} of ${fits.toFixed(1)} s at ${percent} %, grace ${grace}`,
          );
      });
      await fc.assert(property, { numRuns: runs, seed, endOnFailure: true });
    }
    // Of 3,000 cases 3 run short, and 1 goes over: its end took a fifth longer than its start.
    expect(short.length, short.join("; ")).toBeLessThanOrEqual((2 * seeds.length * runs) / 1000);
    expect(over.length, over.join("; ")).toBeLessThanOrEqual((2 * seeds.length * runs) / 1000);
  },
);

it("leaves room for an end that takes 3 % longer than all measurements before it", async () => {
  const slow: Slow = {
    name: "slow",
    items: 100,
    perItem: 0.05,
    firstCall: 0,
    perMeasurement: 0,
    noise: 0,
    drift: 0,
    perCall: 1,
    every: 10,
  };
  const training = { steps: 100, stepSeconds: 1, firstStep: 1, noise: 0, drift: 0 };
  const budget = { overheadPercent: 20, graceSeconds: 0 };
  const { snapshots, trained, evaluated } = await simulate([slow], training, budget);
  // 20 s: 5 each for start and end, the rest for nine measurements, of which two would fit in full.
  expect(trained).toBeCloseTo(100, 9);
  const items = snapshots.map(({ timing }) => timing.items);
  expect([items[0], items.at(-1)]).toEqual([100, 100]);
  const left = 20 - evaluated;
  expect(left).toBeGreaterThanOrEqual(0.03 * 5 - 1e-9);
  // At most that and one item per measurement.
  expect(left).toBeLessThanOrEqual(0.03 * 5 + 9 * 0.05);
});
