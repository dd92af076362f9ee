import { expect, it } from "vitest";
import { PeriodicCallback } from "../../callback/periodic-callback.ts";
import type { TrainerCallback, AnyEvaluation, MetricKit, Session } from "@periodic-eval/contracts";
import { everyPercent, everySteps } from "../../schedule/triggers.ts";
import { manualClock } from "@periodic-eval/testing";
import { toyEvaluation, toyTraining } from "../../../../testing/src/toy-training.test-data.ts";
import { openSession, withSession } from "./session.ts";

/** Trains to the end, or until a stop is requested. */
const train =
  (toy: ReturnType<typeof toyTraining>, steps = 10) =>
  async (session: Session) => {
    await session.begin();
    for (let step = 0; step < steps; step++) {
      toy.step();
      const { stop } = await session.stepEnd({ metrics: { loss: 1 / (step + 1) } });
      if (stop !== null) return stop;
    }
    return null;
  };

it("writes a snapshot at each crossing: the start, every 20 percent, and no second one at the end", async () => {
  const toy = toyTraining();
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(20)] });
  await withSession(toy.options([callback], { phase: "em" }), train(toy));
  const found = await toy.store.list();
  expect(found.map(({ step, crossed, status }) => [step, crossed, status])).toEqual([
    [0, ["start"], "complete"],
    [2, ["every 20 percent: 20"], "complete"],
    [4, ["every 20 percent: 40"], "complete"],
    [6, ["every 20 percent: 60"], "complete"],
    [8, ["every 20 percent: 80"], "complete"],
    [10, ["every 20 percent: 100"], "complete"],
  ]);
  const [start, second] = found;
  expect(start).toMatchObject({
    phase: "em",
    id: "toy",
    evaluation: "toy",
    pct: 0,
    run_step: 0,
    weights: "w0",
    primary_metric: "hit_rate",
    metrics: { hit_rate: { n: 8, unit: "share" } },
    paired: { baseline: null, previous: null },
    provenance: { items: 8, seed: "42", evaluation: { items: 8 } },
    timing: { items: 8, overhead_percent: null, governor: "off" },
    samples: { rows: 8 },
  });
  expect(start!.receipt.map(({ part, intact }) => [part, intact])).toEqual([
    ["math-random", true],
    ["weights", true],
  ]);
  // 5 comparisons planned after the baseline: 0.05 / 5 = 0.01 each.
  expect(second!.paired.baseline!["hit_rate"]).toMatchObject({
    phase: "em",
    step: 0,
    n_pairs: 8,
    exploratory: false,
  });
  expect(second!.paired.baseline!["hit_rate"]!.alpha).toBeCloseTo(0.01, 12);
  expect(second!.paired.previous!["hit_rate"]).toMatchObject({ step: 0, alpha: null, exploratory: true });
  expect(found.at(-1)!.paired.previous!["hit_rate"]).toMatchObject({ step: 8 });
  expect(new Set(found.map(({ provenance }) => provenance.hash)).size).toBe(1);
  expect(toy.warnings()).toEqual([]);
});

it("calls the hooks in order, with the progress before and now", async () => {
  const toy = toyTraining();
  const log: string[] = [];
  const record = (name: string) => (context: Parameters<NonNullable<TrainerCallback["onStepEnd"]>>[0]) =>
    void log.push(`${name} ${context.previous?.step ?? "-"}>${context.progress.step}`);
  const callback: TrainerCallback = {
    id: "log",
    onTrainBegin: record("begin"),
    onEpochBegin: record("epoch begin"),
    onEpochEnd: record("epoch end"),
    onStepBegin: record("step begin"),
    onStepEnd: record("step end"),
    onLog: record("log"),
    onSave: record("save"),
    onTrainEnd: record("end"),
    close: () => void log.push("close"),
  };
  await withSession(toy.options([callback], { maxSteps: 2 }), async (session) => {
    await session.begin();
    await session.stepBegin();
    await session.stepEnd({ epoch: 0.5 });
    await session.save();
    await session.stepBegin();
    await session.stepEnd({ epoch: 1, metrics: { loss: 1 } });
  });
  expect(log).toEqual(
    [
      "begin -",
      "epoch begin -",
      "step begin -",
      "step end 0>1",
      "save 0>1",
      "step begin 0>1",
      "step end 1>2",
      "log 1>2",
      "epoch end 1>2",
      "end 2>2",
      "close",
    ].map((line) => line.replace(/-$/, "->0")),
  );
});

it("begins the session at the first stepEnd, and warns that the start is measured late", async () => {
  const toy = toyTraining();
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everySteps(2)] });
  await withSession(toy.options([callback], { maxSteps: null }), async (session) => {
    for (const step of [1, 2, 4]) {
      toy.step();
      await session.stepEnd({ step });
    }
  });
  const found = await toy.store.list();
  expect(found.map(({ step, crossed }) => [step, crossed])).toEqual([
    [1, ["start"]],
    [2, ["every 2 steps: 2"]],
    [4, ["every 2 steps: 4"]],
  ]);
  expect(toy.warnings().join()).toContain("Call session.begin() before training");
});

it("ends a phase after early stopping as after its last step", async () => {
  const toy = toyTraining();
  const stopping: TrainerCallback = {
    id: "stopping",
    onStepEnd({ progress, requestStop }) {
      if (progress.step === 3) requestStop("enough");
    },
  };
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)] });
  expect(await withSession(toy.options([callback, stopping]), train(toy))).toBe("enough");
  expect((await toy.store.list()).map(({ step, crossed }) => [step, crossed])).toEqual([
    [0, ["start"]],
    [3, ["end"]],
  ]);
});

it("gives a hook the rows of a snapshot", async () => {
  const toy = toyTraining();
  const seen: [step: number, rows: readonly object[]][] = [];
  const reading: TrainerCallback = {
    id: "reading",
    onSnapshot: async ({ rows }, snapshot) => void seen.push([snapshot.step, await rows(snapshot)]),
  };
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)] });
  await withSession(toy.options([callback, reading]), train(toy));
  const snapshots = await toy.store.list();
  expect(seen.map(([step]) => step)).toEqual(snapshots.map(({ step }) => step));
  for (const [at, snapshot] of snapshots.entries())
    expect(seen[at]![1]).toEqual(await toy.store.rows(snapshot));
  expect(seen[0]![1].length).toBeGreaterThan(0);
});

it("requests a save once, and a stop at every step", async () => {
  const toy = toyTraining();
  const asking: TrainerCallback = {
    id: "asking",
    onStepEnd({ progress, requestSave, requestStop }) {
      if (progress.step === 1) requestSave("best so far");
      if (progress.step === 2) requestStop("enough");
    },
  };
  const session = openSession(toy.options([asking]));
  expect(await session.stepEnd()).toEqual({ stop: null, save: "best so far" });
  expect(await session.stepEnd()).toEqual({ stop: "enough", save: null });
  expect(await session.stepEnd()).toEqual({ stop: "enough", save: null });
  await session.close();
});

it("includes the changes of onSave in a checkpoint, and throws for save before begin", async () => {
  const toy = toyTraining();
  let saves = 0;
  const counting: TrainerCallback = { id: "counting", onSave: () => void saves++, state: () => saves };
  const session = openSession(toy.options([counting]));
  await expect(session.save()).rejects.toThrow("session.save: got a call before begin");
  await session.begin();
  expect((await session.save()).callbacks).toEqual({ counting: 1 });
  await session.close();
});

it("shares the level of a comparison among all metrics, and 0.05 among the comparisons of a phase", async () => {
  const toy = toyTraining();
  const evaluation = {
    ...toyEvaluation(),
    metrics: ({ rate, mean }: MetricKit<{ id: string; hit: boolean; reply: string }>) => ({
      hit_rate: rate((row) => row.hit),
      length: mean((row) => row.reply.length),
    }),
  } as AnyEvaluation;
  const callback = new PeriodicCallback(evaluation, { schedule: [everyPercent(20)] });
  await withSession(toy.options([callback], { familywise: "all" }), train(toy));
  const [, ...measured] = await toy.store.list();
  expect(measured.length).toBe(5);
  const shared = measured.map(({ paired }) =>
    Object.values(paired.baseline!).filter(({ alpha }) => alpha !== null),
  );
  expect(
    shared.every((metrics) => metrics.length > 0 && metrics.every(({ exploratory }) => !exploratory)),
  ).toBe(true);
  // 5 comparisons planned: 0.01 each; Holm's smallest level of m metrics is 0.01/m.
  for (const metrics of shared) {
    expect(metrics.length * Math.min(...metrics.map(({ alpha }) => alpha!))).toBeCloseTo(0.01, 12);
  }
});

it("continues run_step from the first phase in the second", async () => {
  const toy = toyTraining();
  const callback = () => new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(50)] });
  await withSession(toy.options([callback()], { phase: "coupling" }), train(toy));
  await withSession(toy.options([callback()], { phase: "em", baseline: "run_start" }), train(toy));
  const found = await toy.store.list();
  expect(found.map(({ phase, step, run_step }) => [phase, step, run_step])).toEqual([
    ["coupling", 0, 0],
    ["coupling", 5, 5],
    ["coupling", 10, 10],
    ["em", 0, 10],
    ["em", 5, 15],
    ["em", 10, 20],
  ]);
  // The first phase's start; this phase's start is 5 steps before.
  expect(found[4]!.paired.baseline!["hit_rate"]).toMatchObject({ phase: "coupling", step: 0 });
  expect(found[4]!.paired.previous!["hit_rate"]).toMatchObject({ phase: "em", step: 0 });
});

it("computes overhead as window seconds over training seconds", async () => {
  const toy = toyTraining();
  const clock = manualClock();
  const evaluation = toyEvaluation({ onMeasure: () => clock.advance(3) });
  const callback = new PeriodicCallback(evaluation, { schedule: [everyPercent(50)] });
  const options = toy.options([callback], { clock: clock.seconds });
  await withSession(options, async (session) => {
    await session.begin();
    for (let step = 0; step < 10; step++) {
      toy.step();
      clock.advance(2);
      await session.stepEnd();
    }
  });
  const found = await toy.store.list();
  // At step 5: two windows of 3 s; 5 steps of 2 s trained: 6 / 10 = 60 %. At step 10: 9 / 20 = 45 %.
  expect(found.map(({ timing }) => timing.overhead_percent)).toEqual([null, 60, 45]);
  expect(found[1]!.timing).toMatchObject({
    total_seconds: 3,
    measure_seconds: 3,
    guards_seconds: 0,
    grade_seconds: null,
  });
});

it("sends metrics of the loop and numbers of hooks to the loggers", async () => {
  const toy = toyTraining();
  const logged: unknown[] = [];
  const logger = {
    name: "l",
    train: (metrics: object, at: { step: number; phase: string }) =>
      void logged.push([metrics, at.step, at.phase]),
  };
  const reporting: TrainerCallback = {
    id: "r",
    onLog: ({ report, metrics }) => report({ doubled: 2 * metrics["loss"]! }),
  };
  await withSession(toy.options([reporting], { loggers: [logger] }), async (session) => {
    await session.stepEnd({ metrics: { loss: 3 } });
  });
  expect(logged).toEqual([
    [{ loss: 3 }, 1, "train"],
    [{ doubled: 6 }, 1, "train"],
  ]);
});

it("measures the thresholds so far, but no start, in a phase first seen in its middle", async () => {
  const toy = toyTraining();
  const callback = new PeriodicCallback(toyEvaluation(), { schedule: [everyPercent(20)] });
  const warnings: string[] = [];
  const logger = {
    name: "warnings",
    event: (e: { kind: string; message?: string }) =>
      void (e.kind === "warning" && warnings.push(e.message!)),
  };
  await withSession(toy.options([callback], { maxSteps: null, loggers: [logger] }), async (session) => {
    toy.step();
    await session.stepEnd({ step: 5, maxSteps: 10 });
    toy.step();
    await session.stepEnd({ step: 9 });
  });
  expect((await toy.store.list()).map(({ step, crossed }) => [step, crossed])).toEqual([
    [5, ["every 20 percent: 20", "every 20 percent: 40"]],
    [9, ["every 20 percent: 60", "every 20 percent: 80"]],
  ]);
  expect(warnings).toEqual([]);
});

it("reports a failed begin once, by throwing", async () => {
  const warnings: string[] = [];
  const logger = {
    name: "warnings",
    event: (e: { kind: string; message?: string }) =>
      void (e.kind === "warning" && warnings.push(e.message!)),
  };
  const callback = new PeriodicCallback({ ...toyEvaluation(), items: () => [] }, { schedule: [] });
  const options = toyTraining().options([callback], { loggers: [logger] });
  await expect(withSession(options, async () => {})).rejects.toThrow("got no items");
  expect(warnings).toEqual([]);
});

it("logs metrics of the last step to loggers and callbacks, between begin and close", async () => {
  const toy = toyTraining();
  const logged: unknown[] = [];
  const logger = {
    name: "logged",
    train: (metrics: object, { step }: { step: number }) => void logged.push([step, metrics]),
  };
  const callback: TrainerCallback = {
    id: "listening",
    onLog: ({ progress, metrics }) => void logged.push([`onLog ${progress.step}`, metrics]),
  };
  const session = openSession({ ...toy.options([callback]), loggers: [logger] });
  const eval_loss = { eval_loss: 2 };
  await expect(session.log(eval_loss)).rejects.toThrow("session.log: got a call before begin");
  await session.begin();
  await session.stepEnd();
  expect(logged).toEqual([]);
  await session.log(eval_loss);
  expect(logged).toEqual([
    [1, eval_loss],
    ["onLog 1", eval_loss],
  ]);
  expect(session.progress.step).toBe(1);
  await session.end();
  await session.log(eval_loss);
  expect(logged).toHaveLength(4);
  await session.close();
  await expect(session.log(eval_loss)).rejects.toThrow("session.log: got a call after close");
});

it("calls the same hooks if the loop calls only stepEnd, and warns of a late request from onStepBegin", async () => {
  const traceOf = async (tellsBegin: boolean) => {
    const toy = toyTraining();
    const trace: unknown[] = [];
    const record = (name: string) => (context: Parameters<NonNullable<TrainerCallback["onStepEnd"]>>[0]) => {
      const { elapsedSeconds: _time, ...at } = context.progress;
      trace.push([name, at, context.previous?.step ?? null]);
      if (name === "step begin" && at.step === 1) context.measure({ id: "late", evaluation, crossed: [] });
    };
    const evaluation = toyEvaluation();
    const callback: TrainerCallback = {
      id: "log",
      asks: [evaluation],
      onEpochBegin: record("epoch begin"),
      onStepBegin: record("step begin"),
      onStepEnd: record("step end"),
    };
    await withSession(toy.options([callback], { maxSteps: 4 }), async (session) => {
      for (const step of [1, 2, 2, 4]) {
        if (tellsBegin && step > session.progress.step) await session.stepBegin();
        toy.step();
        await session.stepEnd({ step });
      }
    });
    const measured = (await toy.store.list()).map(({ step }) => step);
    return { trace, measured, warnings: toy.warnings() };
  };
  const [short, long] = [await traceOf(false), await traceOf(true)];
  expect(short.trace).toEqual(long.trace);
  // Step 2 ends twice, but begins once.
  expect(short.trace.map((entry) => (entry as [string])[0]).join()).toBe(
    "epoch begin,step begin,step end,step begin,step end,step end,step begin,step end",
  );
  expect([long.measured, long.warnings]).toEqual([[1], []]);
  expect([short.measured, short.warnings]).toEqual([
    [2],
    [
      expect.stringContaining(
        '"late" was requested before step 2 and is measured after it. Call session.stepBegin() before the step.',
      ),
    ],
  ]);
});
