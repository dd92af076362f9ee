import { describe, expect, it } from "vitest";
import {
  checkTriggers,
  atEnd,
  atPercents,
  atStart,
  atSteps,
  everyEpochs,
  everyPercent,
  everySeconds,
  everySteps,
  describeCrossing,
  needsMaxSteps,
  timesPerPhase,
} from "./triggers.ts";

const all = [everyPercent(20), timesPerPhase(5), everySteps(100), everyEpochs(0.5), everySeconds(60)];
const more = [atPercents([1, 50]), atSteps([1, 2]), atStart(), atEnd()];

describe("triggers", () => {
  it("returns plain data that checkTriggers accepts, also after JSON", () => {
    expect(checkTriggers(JSON.parse(JSON.stringify([...all, ...more])), "schedule")).toEqual([
      ...all,
      ...more,
    ]);
  });

  it("needs maxSteps for percents and times per phase", () => {
    expect([...all, ...more].map((one) => needsMaxSteps([one]))).toEqual([
      true,
      true,
      false,
      false,
      false,
      true,
      false,
      false,
      false,
    ]);
    expect(needsMaxSteps([atStart(), everyPercent(1)])).toBe(true);
  });

  it.each([
    [
      "everyPercent",
      () => everyPercent(0),
      "everyPercent.every: got 0, expected a number above 0 and at most 100",
    ],
    [
      "everyPercent",
      () => everyPercent(1e-9),
      "everyPercent.every: got 1e-9, expected at least 0.001 percent",
    ],
    ["everyEpochs", () => everyEpochs(1e-9), "everyEpochs.every: got 1e-9, expected at least 0.001 epochs"],
    ["everySeconds", () => everySeconds(1e-9), "got 1e-9, expected at least 0.001 seconds"],
    ["timesPerPhase", () => timesPerPhase(1e9), "got 1000000000, expected at most 100000 times"],
    ["everyPercent", () => everyPercent(Number.NaN), "got NaN"],
    ["everyPercent", () => everyPercent(100.5), "got 100.5"],
    ["everyPercent", () => everyPercent(-20), "got -20"],
    ["timesPerPhase", () => timesPerPhase(2.5), "timesPerPhase.times: got 2.5, expected a positive integer"],
    ["everySteps", () => everySteps(1.5), "everySteps.every: got 1.5, expected a positive integer"],
    ["everySteps", () => everySteps(Infinity), "got Infinity"],
    ["everyEpochs", () => everyEpochs(0), "everyEpochs.every: got 0, expected a finite number above 0"],
    ["everySeconds", () => everySeconds(-1), "got -1"],
    ["atPercents", () => atPercents([50, 101]), "atPercents.at[1]: got 101"],
    ["atPercents", () => atPercents([]), "got [], expected at least one number"],
    ["atSteps", () => atSteps([0]), "Use atStart() for step 0."],
  ])("throws in %s for an amount without thresholds", (_, build, message) => {
    expect(build).toThrow(message);
  });
});

describe("checkTriggers", () => {
  it.each([
    [
      { evry: 20, unit: "percent" },
      'schedule[1].evry: got the unknown option "evry", expected one of every, at, times, unit, per. Did you mean "every"?',
    ],
    [
      { every: 20, units: "percent" },
      'got the unknown option "units", expected one of every, unit. Did you mean "unit"?',
    ],
    [{ every: 20, unit: "percents" }, 'schedule[1].unit: got "percents"'],
    [{ every: 20, unit: "percents" }, 'Write "percent".'],
    [{ at: [5], unit: "epochs" }, 'got "epochs", expected "percent" or "steps"'],
    [{ at: "begin" }, 'got "begin", expected "start" or "end"'],
    [{ at: "start", unit: "steps" }, 'got the unknown option "unit", expected one of at. Remove it.'],
    [{ times: 5, per: "epoch" }, 'got "epoch", expected "phase"'],
    [{ every: "20", unit: "steps" }, 'got "20", expected a positive integer'],
    ["start", 'got "start", expected a trigger'],
    [{}, 'schedule[1].at: got undefined, expected "start" or "end"'],
  ])("throws for %j", (trigger, message) => {
    expect(() => checkTriggers([atStart(), trigger], "schedule")).toThrow(message);
  });
});

it("describes crossings as snapshots record them", () => {
  const described = [
    { trigger: everyPercent(20), at: 40 },
    { trigger: timesPerPhase(5), at: 2 },
    { trigger: everyEpochs(0.5), at: 1.5 },
    { trigger: atSteps([150]), at: 150 },
    { trigger: atStart(), at: 0 },
    { trigger: atEnd(), at: null },
  ].map(describeCrossing);
  expect(described).toEqual([
    "every 20 percent: 40",
    "5 times per phase: 2",
    "every 0.5 epochs: 1.5",
    "at steps: 150",
    "start",
    "end",
  ]);
});
