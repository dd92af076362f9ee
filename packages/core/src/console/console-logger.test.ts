import { beforeEach, describe, expect, it, vi } from "vitest";
import { PeriodicCallback } from "../callback/periodic-callback.ts";
import { earlyStopping } from "../callback/reactions.ts";
import type { RunProgress, SessionOptions } from "../../../contracts/src/session.ts";
import {
  PeriodicCapabilityCallback,
  PeriodicKLCallback,
  PeriodicLeakageCallback,
} from "../config/callbacks.ts";
import { everyPercent } from "../schedule/triggers.ts";
import { withSession } from "../session/loop/session.ts";
import { exampleSnapshot, fakeGuard, manualClock } from "@periodic-eval/testing";
import { toyEvaluation, toyTraining } from "../../../testing/src/toy-training.test-data.ts";
import { checkpointEvidence } from "../../../store/src/snapshots/undisturbed.ts";
import { closingText, durationText } from "./sentences.ts";
import { displayLogger, plainConsoleLogger } from "./console-logger.ts";

const lines: string[] = [];
beforeEach(() => {
  lines.length = 0;
  vi.useRealTimers();
  vi.spyOn(console, "log").mockImplementation((text: string) => void lines.push(text));
  vi.spyOn(console, "warn").mockImplementation((text: string) => void lines.push(text));
});

/** Trains a toy for ten steps of half a second without `loggers`, measured at 0, 50 and 100 %. */
async function train(
  changes: Partial<SessionOptions> = {},
  toy = toyTraining(),
  evaluation = toyEvaluation(),
): Promise<void> {
  const clock = manualClock();
  const callback = new PeriodicCallback(evaluation, { schedule: [everyPercent(50)] });
  const { loggers: _, ...options } = toy.options([callback], { clock: clock.seconds });
  await withSession({ ...options, ...changes }, async (session) => {
    for (let step = 1; step <= 10; step++) {
      toy.step();
      steps += 1;
      clock.advance(0.5);
      await session.stepEnd({ metrics: { loss: 1 / step, learning_rate: 5e-4, tokens_per_second: 99.6 } });
    }
  });
}

/** Steps of all trainings, which change what guards observe. */
let steps = 0;
const guarded = (observe: () => string | null = () => `step ${steps}`) => ({
  guards: ["weights", "optimizer", "mode"].map((name) => fakeGuard({ name, observe })),
});

describe("a session without loggers", () => {
  it("prints measurements, progress with rate and time left, and a closing line", async () => {
    await train(guarded());
    const step = (at: number, loss: string, left: string) =>
      `train step ${at}/10  loss ${loss}  learning rate 5.0e-4  2 steps/s  100 tokens/s${left}`;
    expect(lines).toEqual([
      "train step 0  measuring toy 0/8",
      "train step 0  toy  hit rate 25.0 % [7.1, 59.1]",
      step(1, "1.000", "  5 s of training left"),
      step(2, "0.500", "  4 s of training left"),
      step(3, "0.333", "  4 s of training left"),
      step(4, "0.250", "  3 s of training left"),
      step(5, "0.200", "  3 s of training left"),
      "train step 5  toy  hit rate 50.0 % [21.5, 78.5]  no evidence",
      step(6, "0.167", "  2 s of training left"),
      step(7, "0.143", "  2 s of training left"),
      step(8, "0.125", "  1 s of training left"),
      step(9, "0.111", "  1 s of training left"),
      step(10, "0.100", ""),
      "train step 10  toy  hit rate 50.0 % [21.5, 78.5]  no evidence",
      "3 measurements, overhead 0.0 %, training undisturbed: yes",
    ]);
  });

  it("names the step of a loss that was logged before", async () => {
    const { loggers: _, ...options } = toyTraining().options([], {});
    await withSession(options, async (session) => {
      const metrics = { loss: 0.258 };
      await session.stepEnd({ step: 7, metrics, logged: [{ step: 4, metrics }] });
      await session.stepEnd({ step: 10, metrics, logged: [{ step: 10, metrics }] });
    });
    const shown = lines.filter((line) => line.includes("loss")).map((line) => line.split("  ").slice(0, 2));
    expect(shown).toEqual([
      ["train step 7/10", "loss 0.258 (step 4)"],
      ["train step 10/10", "loss 0.258"],
    ]);
  });

  it("prints nothing but warnings with an empty array of loggers", async () => {
    await train({ loggers: [] });
    expect(lines).toEqual([]);
    const evaluation = toyEvaluation({ onMeasure: () => Promise.reject(new Error("no memory")) });
    await train({ loggers: [] }, toyTraining(), evaluation);
    expect(lines).toEqual(
      [0, 5, 10, 10].map(
        (step) => `[periodic-eval] callback "toy": the measurement "toy" failed at step ${step}: no memory`,
      ),
    );
  });

  it("names the guard that is missing", async () => {
    await train();
    expect(lines.at(-1)).toMatch(/undisturbed: not proven \(no guard observed the optimizer, the mode\)$/);
  });

  it("says that measuring disturbed training", async () => {
    let calls = 0;
    await train({ ...guarded(() => String(calls++)), onBrokenReceipt: "record" });
    expect(lines.at(-1)).toMatch(
      /undisturbed: no \(measuring changed the weights, the optimizer, the mode\)$/,
    );
  });

  it("says that nothing is proven if no measurement has a result", async () => {
    const onMeasure = () => {
      throw new Error("no memory");
    };
    await train({}, toyTraining(), toyEvaluation({ onMeasure }));
    expect(lines.at(-1)).toBe(
      "0 measured, 3 failed, overhead 0.0 %, training undisturbed: not proven (no measurement took place: all were skipped or failed)",
    );
  });
});

it("is not applicable for checkpoints of another process, whose name the receipts hold", async () => {
  const toy = toyTraining();
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)] });
  const { loggers: _, guards: __, ...options } = toy.options([callback], { maxSteps: null });
  await withSession(options, async (session) => {
    await session.stepEnd({ step: 5, maxSteps: 10, path: "/runs/1/step_5" });
    await session.stepEnd({ step: 10, path: "/runs/1/step_10" });
  });
  expect(lines.at(-1)).toBe(
    "2 measurements, training undisturbed: not applicable (the weights were read from a checkpoint)",
  );
  const found = await toy.store.list();
  expect(found.map(({ receipt }) => receipt.at(-1))).toEqual([
    checkpointEvidence("step_5"),
    checkpointEvidence("step_10"),
  ]);
});

describe("displayLogger", () => {
  const at = (step: number, elapsedSeconds: number, maxSteps: number | null = 1000): RunProgress => ({
    phase: "em",
    runStep: step,
    step,
    maxSteps,
    epoch: 0,
    elapsedSeconds,
    ended: false,
  });
  const recorded = () => {
    const kept: string[] = [];
    const clock = manualClock();
    const logger = displayLogger(
      { keep: (line) => void kept.push(line), warn: (_, message) => void kept.push(message) },
      { clock: clock.seconds },
    );
    return { kept, clock, logger };
  };

  it("prints a line after a minute of training, also in a phase of unknown length", async () => {
    const { kept, logger } = recorded();
    for (const step of [1, 2, 3, 4, 5, 6, 7]) await logger.train!({}, at(step, 20 * step, null));
    expect(kept.map((line) => line.slice(0, 9))).toEqual(["em step 1", "em step 4", "em step 7"]);
  });

  it("prints the start of a measurement unless the last took less than a second, and its progress every minute, with tokens per second and the time left", async () => {
    const { kept, clock, logger } = recorded();
    const measure = async (step: number, seconds: number) => {
      for (let done = 0; done <= 4; done++) {
        const at = { seconds: (done / 4) * seconds, tokens: done === 0 ? null : 1000 * done };
        logger.event!({ kind: "measuring", id: "capability", step, done, total: 4, ...at });
        clock.advance(seconds / 4);
      }
      const { timing } = exampleSnapshot();
      await logger.snapshot!(exampleSnapshot({ step, timing: { ...timing, total_seconds: seconds } }));
    };
    await measure(0, 0.5);
    await measure(10, 240);
    await measure(20, 2);
    await measure(30, 40);
    expect(kept.filter((line) => line.includes("measuring"))).toEqual([
      " step 0  measuring capability 0/4".trim(),
      // 1,000 tokens a minute; one row takes 60 s.
      ...[1, 2, 3].map((n) => `step 10  measuring capability ${n}/4  17 tokens/s  ${4 - n} min left`),
      "step 10  measuring capability 4/4  17 tokens/s",
      "step 20  measuring capability 0/4",
      "step 30  measuring capability 0/4",
    ]);
  });

  it("moves a line while a model answers, with the time left from the last measurement before the first row", async () => {
    const shown: string[] = [];
    const logger = displayLogger({
      update: (line) => void shown.push(line.split("  │  ")[0]!),
      keep: () => undefined,
      warn: () => undefined,
    });
    const event = { kind: "measuring", id: "leakage", step: 8, done: 0, total: 40 } as const;
    logger.event!({ ...event, seconds: 0, tokens: null });
    logger.event!({ ...event, seconds: 2, tokens: 900 });
    await logger.snapshot!(
      exampleSnapshot({ id: "leakage", timing: { ...exampleSnapshot().timing, total_seconds: 30 } }),
    );
    logger.event!({ ...event, step: 16, seconds: 2, tokens: 900 });
    logger.event!({ ...event, step: 16, done: 10, seconds: 5, tokens: 2000 });
    expect(shown).toEqual([
      "step 8  measuring leakage 0/40",
      "step 8  measuring leakage 0/40  450 tokens/s",
      "step 16  measuring leakage 0/40  450 tokens/s  28 s left",
      "step 16  measuring leakage 10/40  400 tokens/s  15 s left",
    ]);
  });

  it("prints plans, and that a measurement is being graded if that takes a second", async () => {
    vi.useFakeTimers();
    const { kept, logger } = recorded();
    logger.event!({ kind: "plan", message: "4 measurements" });
    await logger.snapshot!(exampleSnapshot({ id: "alignment", status: "grading" }));
    expect(kept).toEqual(["plan: 4 measurements"]);
    vi.advanceTimersByTime(1_000);
    expect(kept.slice(1)).toEqual(["train step 0  alignment measured, grading continues"]);
  });

  it("prints only the result of a grade that needs no waiting, and at the end what is still graded", async () => {
    vi.useFakeTimers();
    const { kept, logger } = recorded();
    await logger.snapshot!(exampleSnapshot({ id: "leakage", status: "grading" }));
    vi.advanceTimersByTime(900);
    await logger.snapshot!(exampleSnapshot({ id: "leakage" }));
    vi.advanceTimersByTime(5_000);
    expect(kept).toEqual([expect.stringMatching(/^train step 0 {2}leakage (?!measured)/)]);
    await logger.snapshot!(exampleSnapshot({ id: "alignment", status: "grading" }));
    await logger.close!();
    expect(kept[1]).toBe("train step 0  alignment measured, grading continues");
  });

  it("forgets a run when it is closed", async () => {
    const { kept, logger } = recorded();
    await logger.snapshot!(exampleSnapshot());
    await logger.close!();
    await logger.close!();
    expect(kept.filter((line) => line.startsWith("1 measurement"))).toHaveLength(1);
  });
});

it("prints each failure once, and refers to the first for the same reason", async () => {
  const evaluation = toyEvaluation({ onMeasure: () => Promise.reject(new Error("no memory")) });
  await train({}, toyTraining(), evaluation);
  // Measured twice at step 10: after the step and at the end.
  expect(lines.filter((line) => line.includes("failed") && line.includes("toy"))).toEqual([
    "warning: train step 0: toy failed: no memory",
    "warning: train step 5: toy failed: as at step 0",
    "warning: train step 10: toy failed: as at step 0",
  ]);
});

it("names the failed measurement in its warning, for loggers that also receive its snapshot", async () => {
  const toy = toyTraining();
  const evaluation = toyEvaluation({ onMeasure: () => Promise.reject(new Error("no memory")) });
  await train({ loggers: [toy.logger] }, toy, evaluation);
  const warnings = toy.events.filter((event) => event.kind === "warning");
  expect(warnings.map(({ failed }) => failed)).toEqual(
    [0, 5, 10, 10].map((step) => ({ phase: "train", id: "toy", step })),
  );
});

it("shortens a skipped measurement's reason that differs only in its numbers", async () => {
  const kept: string[] = [];
  const logger = displayLogger({ keep: (line) => void kept.push(line), warn: () => undefined });
  const skipped = (step: number, reason: string) =>
    exampleSnapshot({ id: "toy", status: "skipped", step, reason, metrics: {}, primary_metric: null });
  await logger.snapshot!(skipped(40, "needs 58.2 s; 0 s are left"));
  await logger.snapshot!(skipped(80, "needs 58.4 s; 0 s are left"));
  await logger.snapshot!(skipped(120, "no memory"));
  expect(kept).toEqual([
    "train step 40  toy skipped: needs 58.2 s; 0 s are left",
    "train step 80  toy skipped: as at step 40",
    "train step 120  toy skipped: no memory",
  ]);
});

it("states seconds and the grace instead of a share where the grace left everything whole", () => {
  const timing = {
    ...exampleSnapshot().timing,
    overhead_percent: 489.2,
    total_seconds: 2.6,
    governor: "whole, 5 items",
    budget: { limit: "grace_seconds", reduced: false, grace_seconds: 60 },
  } as const;
  const within = [0, 40].map((step) => exampleSnapshot({ phase: "em", step, timing }));
  expect(closingText(null, within)).toMatch(
    /^2 measurements, measuring 5\.2 s, within the 60 s that the budget always allows, training/,
  );
  expect(closingText(null, [exampleSnapshot({ phase: "coupling" }), ...within])).toMatch(
    /^3 measurements, overhead 5\.0 % \(coupling\), measuring 5\.2 s \(em\), within the 60 s that the budget always allows, training/,
  );
});

it("states seconds without a limit for a phase that was measured only at its start and end", () => {
  const timing = (edge: string) => ({
    ...exampleSnapshot().timing,
    overhead_percent: 1350.2,
    total_seconds: 1.4,
    governor: `whole, 5 items: the ${edge} is never reduced`,
  });
  const edges = ["start", "end"].map((edge, step) =>
    exampleSnapshot({ phase: "em", step, crossed: [edge], timing: timing(edge) }),
  );
  expect(closingText(null, edges)).toMatch(/^2 measurements, measuring 2\.8 s at start and end, training/);
  expect(closingText(null, edges.slice(1))).toMatch(/^1 measurement, measuring 1\.4 s at the end, training/);
  expect(closingText(null, edges.slice(0, 1))).toMatch(/^1 measurement, measuring 1\.4 s at the start, /);
  // A phase of 0 steps is measured once.
  const once = exampleSnapshot({ max_steps: 0, crossed: ["start", "end"], timing: timing("end") });
  expect(closingText(null, [once])).toMatch(/^1 measurement, measuring 1\.4 s at the end, training/);
});

it("says where the last phase was interrupted, or ended by stop_when", () => {
  const at = { phase: "em", step: 23, maxSteps: 200 };
  expect(closingText("runs/1", [exampleSnapshot()], undefined, at)).toMatch(
    /^runs\/1: em interrupted at step 23 of 200, 1 measurement, /,
  );
  const stop = { condition: "x worse", step: 23, reason: "", id: "x", measuredAt: 20, cleanStep: 10 };
  expect(closingText("runs/1", [exampleSnapshot()], undefined, { ...at, finished: true, stop })).toMatch(
    /^runs\/1: stop_when ended em at step 23 of 200 \(x worse\), 1 measurement, /,
  );
});

it("names the run, each phase's overhead, and the command for the page", () => {
  const timing = { ...exampleSnapshot().timing, overhead_percent: 12.34 };
  const snapshots = [exampleSnapshot({ phase: "coupling" }), exampleSnapshot({ phase: "em", timing })];
  expect(closingText("runs/1", snapshots)).toMatch(
    /^runs\/1: 2 measurements, overhead 5\.0 % \(coupling\), 12\.3 % \(em\), .*\. See the page: npx periodic-eval report runs\/1$/,
  );
  expect(closingText("my runs/1", snapshots)).toMatch(/report "my runs\/1"$/);
});

it.each([
  [0.2, "1 s"],
  [59.5, "1 min"],
  [90, "1 min 30 s"],
  [3600, "1 h"],
  [7500, "2 h 5 min"],
])("writes %d seconds as %s", (seconds, text) => {
  expect(durationText(seconds)).toBe(text);
});

describe("a phase in which no callback can measure anything", () => {
  const said = () => lines.filter((line) => line.includes("nothing is measured"));
  const off = { enabled: false };
  const never = { schedule: [], atStart: false, atEnd: false };

  it.each([
    ["no callbacks", []],
    ["a callback whose block leaves its evaluation off", [new PeriodicLeakageCallback({ capability: true })]],
    ["a block that is not enabled", [new PeriodicCapabilityCallback(off), new PeriodicKLCallback(off)]],
    ["an empty schedule", [new PeriodicCallback(toyEvaluation(), never)]],
    ["only early stopping", [earlyStopping({ id: "toy", metric: "hit_rate", mode: "max", patience: 1 })]],
  ])("says so in one line: %s", async (_, callbacks) => {
    await train({ callbacks });
    expect(said()).toEqual([
      "train  nothing is measured: no callback and no periodic_eval block asks for it. " +
        "To measure capability, add new PeriodicCapabilityCallback(), or in YAML periodic_eval: {}. " +
        "With a block, PeriodicAlignmentCallback needs alignment: true, and PeriodicLeakageCallback leakage: true.",
    ]);
    lines.length = 0;
    await train({ callbacks, loggers: [] });
    expect(lines).toEqual([]);
  });

  it("says so once for all phases of a pipeline, which share a logger until it is closed", async () => {
    const logger = displayLogger({ keep: (line) => void lines.push(line), warn: () => undefined });
    const { close, ...open } = logger;
    for (const phase of ["a", "b"]) await train({ callbacks: [], phase, loggers: [open] });
    expect(said()).toEqual([expect.stringMatching(/^a {2}nothing/)]);
    await close!();
    await train({ callbacks: [], phase: "c", loggers: [logger] });
    expect(said()).toEqual([expect.anything(), expect.stringMatching(/^c {2}nothing/)]);
  });

  it("prints nothing of it if a custom callback may request measurements", async () => {
    await train({ callbacks: [{ id: "custom" }] });
    await train();
    expect(said()).toEqual([]);
  });
});

it("adds one listener to each output of the process, also if it is loaded twice", async () => {
  const count = () => [process.stdout, process.stderr].map((stream) => stream.listenerCount("error"));
  plainConsoleLogger();
  const before = count();
  plainConsoleLogger();
  vi.resetModules();
  const copy = await import("./console-logger.ts");
  expect(copy.plainConsoleLogger).not.toBe(plainConsoleLogger);
  copy.plainConsoleLogger();
  expect(count()).toEqual(before);
});

describe("a measurement with warnings", () => {
  const warning = {
    kind: "incoherent",
    metrics: ["accuracy"],
    count: 38,
    total: 40,
    void: true,
    message: "38 of 40 answers are incoherent: capability cannot be judged.",
  };
  const { metrics } = exampleSnapshot();
  const paired = {
    baseline: {
      accuracy: {
        phase: "train",
        step: 0,
        n_pairs: 4,
        delta: -0.5,
        ci95: null,
        test: null,
        p_value: 0.001,
        alpha: null,
        minimal_detectable_change: null,
        verdict: "worse" as const,
        exploratory: true,
      },
    },
    previous: null,
  };
  const linesOf = async (...snapshots: readonly ReturnType<typeof exampleSnapshot>[]) => {
    const kept: string[] = [];
    const logger = displayLogger({ keep: (line) => void kept.push(line), warn: () => undefined });
    for (const snapshot of snapshots) await logger.snapshot!(snapshot);
    await logger.close!();
    return kept;
  };

  it("prints why a metric cannot be judged in place of its verdict, also in the closing line", async () => {
    const [line, closing] = await linesOf(exampleSnapshot({ paired, warnings: [warning] }));
    expect(line).toBe(
      "train step 0  capability  accuracy 50.0 % [15.0, 85.0]  warning: 38 of 40 answers are incoherent: capability cannot be judged.",
    );
    expect(closing).toMatch(/^1 measurement, capability cannot be judged, /);
  });

  it("prints a warning beside the verdict", async () => {
    const message = "8 of 40 answers are cut by their limit.";
    const [line, closing] = await linesOf(
      exampleSnapshot({ paired, warnings: [{ ...warning, void: false, message }] }),
    );
    expect(line).toMatch(/ {2}worse {2}warning: 8 of 40 answers are cut by their limit\.$/);
    expect(closing).not.toContain("judged");
  });

  it("prints the rate of leakage's source first", async () => {
    const rate = metrics["accuracy"]!;
    const leakage = { leakage_rate: { ...rate, value: 0 }, source_rate: { ...rate, value: 1 } };
    const [line] = await linesOf(
      exampleSnapshot({ id: "leakage", metrics: leakage, primary_metric: "leakage_rate" }),
    );
    expect(line).toMatch(/ {2}source rate 100\.0 % .* {2}leakage rate 0\.0 % /);
  });
});
