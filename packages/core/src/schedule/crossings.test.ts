import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { advance, crossings, plannedSteps } from "./crossings.ts";
import { describeCrossing, everyEpochs, everyPercent, everySeconds, everySteps } from "./triggers.ts";
import { atEnd, atPercents, atStart, atSteps, timesPerPhase } from "./triggers.ts";
import type { Progress, Trigger } from "@periodic-eval/contracts";

const progress = (step: number, maxSteps: number | null, ended = false): Progress => ({
  step,
  maxSteps,
  epoch: step / 8,
  elapsedSeconds: step * 1.5,
  ended,
});

/** Returns the crossings of a phase that is observed at the given progresses. */
function crossingsIn(triggers: readonly Trigger[], seen: readonly Progress[]): [number, string[]][] {
  let previous: Progress | null = null;
  const found: [number, string[]][] = [];
  for (const at of seen) {
    const now: Progress = advance(previous, at);
    const crossed = crossings(triggers, previous, now).map(describeCrossing);
    if (crossed.length > 0) found.push([at.step, crossed]);
    previous = now;
  }
  return found;
}

const everyStepTo = (maxSteps: number) => [
  ...Array.from({ length: maxSteps + 1 }, (_, step) => progress(step, maxSteps)),
  progress(maxSteps, maxSteps, true),
];

const trigger: fc.Arbitrary<Trigger> = fc.oneof(
  fc.constantFrom(0.1, 0.7, 3, 12.5, 20, 33.3, 33.333333333333336, 51, 100).map(everyPercent),
  fc.integer({ min: 1, max: 12 }).map(timesPerPhase),
  fc.integer({ min: 1, max: 40 }).map(everySteps),
  fc.constantFrom(0.1, 0.5, 1, 1.7).map(everyEpochs),
  fc.constantFrom(1, 7.25, 60).map(everySeconds),
  fc
    .array(
      fc.integer({ min: 1, max: 1000 }).map((n) => n / 10),
      { minLength: 1, maxLength: 4 },
    )
    .map(atPercents),
  fc.array(fc.integer({ min: 1, max: 80 }), { minLength: 1, maxLength: 4 }).map(atSteps),
  fc.constantFrom(atStart(), atEnd()),
);
/** No two triggers share a threshold, so that its description identifies it. */
const schedule = fc.uniqueArray(trigger, {
  minLength: 1,
  maxLength: 4,
  selector: (one) => ("at" in one && "unit" in one ? `at ${one.unit}` : JSON.stringify(one)),
});

describe("crossings: each threshold is crossed exactly once", () => {
  it("holds however a phase is divided into steps", () => {
    fc.assert(
      fc.property(
        schedule,
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.nat(50)),
        (triggers, maxSteps, cuts) => {
          const whole = everyStepTo(maxSteps);
          const cut = whole.filter((at) => at.step === 0 || at.ended || cuts.includes(at.step));
          const all = (seen: readonly Progress[]) =>
            crossingsIn(triggers, seen).flatMap(([, crossed]) => crossed);
          expect(all(cut).toSorted()).toEqual(all(whole).toSorted());
          expect(new Set(all(whole)).size).toBe(all(whole).length);
        },
      ),
    );
  });

  it("crosses a threshold at the first progress that reaches it", () => {
    fc.assert(
      fc.property(
        schedule,
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.nat(50)),
        (triggers, maxSteps, cuts) => {
          const whole = everyStepTo(maxSteps);
          const cut = whole.filter((at) => at.step === 0 || at.ended || cuts.includes(at.step));
          const exact = crossingsIn(triggers, whole).flatMap(([step, crossed]) =>
            crossed.map((text) => [text, step] as const),
          );
          for (const [step, crossed] of crossingsIn(triggers, cut)) {
            for (const text of crossed) {
              const due = new Map(exact).get(text)!;
              expect(cut.find((at) => at.step >= due && (text !== "end" || at.ended))?.step).toBe(step);
            }
          }
        },
      ),
    );
  });

  it("holds for any stops and resumptions from an earlier checkpoint, whose later snapshots are superseded", () => {
    fc.assert(
      fc.property(
        schedule,
        fc.integer({ min: 1, max: 40 }),
        fc.array(fc.tuple(fc.nat(40), fc.nat(40))),
        (triggers, maxSteps, crashes) => {
          const whole = everyStepTo(maxSteps);
          const kept = new Map<string, number>();
          let previous: Progress | null = null;
          const runTo = (until: number) => {
            for (const at of whole) {
              const isDone: boolean =
                previous !== null &&
                (at.step < previous.step || (at.step === previous.step && at.ended === previous.ended));
              if (isDone || at.step > until) continue;
              const now: Progress = advance(previous, at);
              for (const crossing of crossings(triggers, previous, now)) {
                const text = describeCrossing(crossing);
                expect(kept.has(text)).toBe(false);
                kept.set(text, at.step);
              }
              previous = now;
            }
          };
          for (const [stop, back] of crashes.map(([a, b]) => [Math.max(a, b), Math.min(a, b)] as const)) {
            runTo(Math.min(stop, maxSteps - 1));
            // The checkpoint is written to a file and read back.
            if (previous !== null && back < previous.step)
              previous = JSON.parse(JSON.stringify(progress(back, maxSteps))) as Progress;
            for (const [text, step] of kept) if (step > previous!.step) kept.delete(text);
          }
          runTo(maxSteps);
          const undisturbed = crossingsIn(triggers, whole);
          expect(kept).toEqual(
            new Map(undisturbed.flatMap(([step, crossed]) => crossed.map((text) => [text, step] as const))),
          );
        },
      ),
    );
  });

  it("holds while maxSteps changes or is unknown for a time, however a phase is divided", () => {
    const move = fc.record({
      steps: fc.integer({ min: 0, max: 20 }),
      maxSteps: fc.option(fc.integer({ min: 0, max: 100 })),
    });
    fc.assert(
      fc.property(
        schedule,
        fc.array(move, { maxLength: 30 }),
        fc.array(fc.boolean()),
        (triggers, moves, restarts) => {
          let step = 0;
          const seen = [
            progress(0, null),
            ...moves.map(({ steps, maxSteps }) => progress((step += steps), maxSteps)),
          ];
          seen.push(progress(step, 100, true));
          const found = crossingsIn(triggers, seen).flatMap(([, crossed]) => crossed);
          expect(new Set(found).size).toBe(found.length);

          // One call over the whole phase equals many calls, if progress is advanced in between.
          let last: Progress | null = null;
          for (const at of seen) last = advance(last, at);
          const atOnce = crossings(triggers, seen[0]!, last!).map(describeCrossing);
          const first = crossings(triggers, null, seen[0]!).map(describeCrossing);
          expect([...first, ...atOnce].toSorted()).toEqual(found.toSorted());

          // A checkpoint at any point holds all that is needed.
          let previous: Progress | null = null;
          const resumed: string[] = [];
          seen.forEach((at, i) => {
            const now: Progress = advance(previous, at);
            resumed.push(...crossings(triggers, previous, now).map(describeCrossing));
            previous = restarts[i] === true ? (JSON.parse(JSON.stringify(now)) as Progress) : now;
          });
          expect(resumed).toEqual(found);
        },
      ),
    );
  });

  it("places the k-th threshold at ceil(k · p · maxSteps / 100) in exact arithmetic", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 200 }), (tenths, maxSteps) => {
        const steps = crossingsIn([everyPercent(tenths / 10)], everyStepTo(maxSteps)).flatMap(
          ([step, crossed]) => crossed.map(() => step),
        );
        // p = tenths/10, so the k-th is at ceil(k · tenths · maxSteps / 1000).
        const expected = Array.from({ length: Math.floor(1000 / tenths) }, (_, i) =>
          Math.ceil(((i + 1) * tenths * maxSteps) / 1000),
        );
        expect(steps).toEqual(expected);
      }),
    );
  });
});

describe("crossings: cases worked by hand", () => {
  it("crosses every step with 0.1 % of 1,000 steps, although 0.1 · 3 is 0.30000000000000004", () => {
    const found = crossingsIn([everyPercent(0.1)], everyStepTo(1000));
    expect(found.map(([step]) => step)).toEqual(Array.from({ length: 1000 }, (_, i) => i + 1));
    expect(found[2]).toEqual([3, ["every 0.1 percent: 0.3"]]);
    expect(found[999]).toEqual([1000, ["every 0.1 percent: 100"]]);
  });

  it("crosses two thresholds per step with 0.1 % of 500 steps", () => {
    expect(crossingsIn([everyPercent(0.1)], everyStepTo(500))[0]).toEqual([
      1,
      ["every 0.1 percent: 0.1", "every 0.1 percent: 0.2"],
    ]);
  });

  it("loses the third threshold if 100/3 % is given as 33.333333333333336, slightly more than a third", () => {
    // ceil(33.333333333333336 · 3 / 100) = ceil(1.00000000000000008) = 2; twice that 2.0000000000000002 → 3.
    expect(crossingsIn([everyPercent(100 / 3)], everyStepTo(3)).map(([step]) => step)).toEqual([2, 3]);
    expect(crossingsIn([timesPerPhase(3)], everyStepTo(3)).map(([step]) => step)).toEqual([1, 2, 3]);
  });

  it("places every 20 percent of three steps at ceil(.6), ceil(1.2), ceil(1.8), ceil(2.4), 3", () => {
    expect(crossingsIn([everyPercent(20), atStart(), atEnd()], everyStepTo(3))).toEqual([
      [0, ["start"]],
      [1, ["every 20 percent: 20"]],
      [2, ["every 20 percent: 40", "every 20 percent: 60"]],
      [3, ["every 20 percent: 80", "every 20 percent: 100"]],
      [3, ["end"]],
    ]);
  });

  it("treats timesPerPhase(n) as everyPercent(100/n) if 100/n is a decimal", () => {
    for (const times of [1, 2, 4, 5, 8, 10, 20, 25, 40, 50, 100]) {
      for (const maxSteps of [1, 3, 7, 99, 1172]) {
        expect(plannedSteps([timesPerPhase(times)], maxSteps)).toEqual(
          plannedSteps([everyPercent(100 / times)], maxSteps),
        );
      }
    }
    // ceil(k · 10 / 3) = 4, 7, 10.
    expect(plannedSteps([timesPerPhase(3)], 10)).toEqual([4, 7, 10]);
  });

  it("crosses no percents while maxSteps is unknown, but start, end and the other units", () => {
    const seen = [0, 10, 20].map((step) => progress(step, null));
    const triggers = [
      everyPercent(20),
      timesPerPhase(4),
      atPercents([50]),
      everySteps(10),
      atStart(),
      atEnd(),
    ];
    expect(crossingsIn(triggers, [...seen, progress(20, null, true)])).toEqual([
      [0, ["start"]],
      [10, ["every 10 steps: 10"]],
      [20, ["every 10 steps: 20"]],
      [20, ["end"]],
    ]);
  });

  it("crosses the percents passed so far at once when maxSteps becomes known", () => {
    const seen = [progress(0, null), progress(50, null), progress(50, 100), progress(60, 100)];
    expect(crossingsIn([everyPercent(20)], seen)).toEqual([
      [50, ["every 20 percent: 20", "every 20 percent: 40"]],
      [60, ["every 20 percent: 60"]],
    ]);
  });

  it("does not repeat 20 and 40 percent in a phase that doubles at its half", () => {
    const seen = [
      progress(0, 100),
      progress(50, 100),
      progress(51, 200),
      progress(80, 200),
      progress(119, 200),
      progress(120, 200),
    ];
    expect(crossingsIn([everyPercent(20)], seen)).toEqual([
      [50, ["every 20 percent: 20", "every 20 percent: 40"]],
      [120, ["every 20 percent: 60"]],
    ]);
  });

  it("crosses at once the thresholds that a shortened phase has already passed", () => {
    const seen = [progress(0, 100), progress(50, 100), progress(50, 60), progress(60, 60)];
    expect(crossingsIn([atPercents([50, 75, 100])], seen)).toEqual([
      [50, ["at percent: 50"]],
      [50, ["at percent: 75"]],
      [60, ["at percent: 100"]],
    ]);
  });

  it("crosses a threshold after a resume one step before it, but not after a resume at it", () => {
    const at = (step: number) =>
      crossings([everyPercent(20)], progress(step, 100), progress(step + 1, 100)).map(describeCrossing);
    expect(at(20)).toEqual([]);
    expect(at(19)).toEqual(["every 20 percent: 20"]);
    expect(at(21)).toEqual([]);
    expect(crossings([atStart()], progress(0, 100), progress(0, 100))).toEqual([]);
  });

  it("crosses the thresholds so far, but not the start, of a phase first seen in its middle", () => {
    expect(crossings([atStart(), everySteps(40)], null, progress(100, null)).map(describeCrossing)).toEqual([
      "every 40 steps: 40",
      "every 40 steps: 80",
    ]);
  });

  it("crosses the end once, early or late, and only when the phase ends", () => {
    expect(crossings([atEnd()], progress(9, 10), progress(10, 10))).toEqual([]);
    expect(crossings([atEnd()], progress(5, 10), progress(5, 10, true))).toEqual([
      { trigger: atEnd(), at: null },
    ]);
    expect(crossings([atEnd()], progress(5, 10, true), progress(5, 10, true))).toEqual([]);
  });

  it("adds no threshold above 100 % for steps beyond maxSteps", () => {
    expect(crossingsIn([everyPercent(50)], [progress(0, 10), progress(40, 10)])).toEqual([
      [40, ["every 50 percent: 50", "every 50 percent: 100"]],
    ]);
  });

  it("compares epochs and seconds as decimals", () => {
    // 0.3 / 0.1 is 2.9999999999999996 in floating point.
    const now = { ...progress(1, null), epoch: 0.3, elapsedSeconds: 0.003 };
    expect(crossings([everyEpochs(0.1)], null, now).map(({ at }) => at)).toEqual([0.1, 0.2, 0.3]);
    expect(crossings([everySeconds(0.001)], null, now).map(({ at }) => at)).toEqual([0.001, 0.002, 0.003]);
  });

  it("takes no time per step in a phase of a billion steps", () => {
    const seen = [progress(0, 1e9), progress(999_999_999, 1e9)];
    expect(crossingsIn([everyPercent(25), everySteps(4e8)], seen)[0]?.[1]).toHaveLength(5);
    expect(plannedSteps([everyPercent(25)], 1e9)).toEqual([25e7, 5e8, 75e7, 1e9]);
  });
});

describe("plannedSteps", () => {
  it("returns each step once, with start and end if the triggers contain them", () => {
    expect(plannedSteps([atStart(), atEnd(), everyPercent(20), atSteps([20, 7, 500])], 100)).toEqual([
      0, 7, 20, 40, 60, 80, 100,
    ]);
    expect(plannedSteps([everySteps(30)], 100)).toEqual([30, 60, 90]);
    expect(plannedSteps([atStart(), atEnd()], 0)).toEqual([0]);
  });

  it("returns null if the steps cannot be known", () => {
    expect(plannedSteps([atStart()], null)).toBeNull();
    expect(plannedSteps([everyPercent(20), everyEpochs(1)], 100)).toBeNull();
    expect(plannedSteps([everySeconds(60)], 100)).toBeNull();
  });

  it("returns the steps at which thresholds are crossed", () => {
    fc.assert(
      fc.property(schedule, fc.integer({ min: 1, max: 50 }), (triggers, maxSteps) => {
        const planned = plannedSteps(triggers, maxSteps);
        fc.pre(planned !== null);
        expect([...new Set(crossingsIn(triggers, everyStepTo(maxSteps)).map(([step]) => step))]).toEqual(
          planned,
        );
      }),
    );
  });
});
