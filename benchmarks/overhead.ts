// How much does measuring cost?
// Runs the same training without callbacks, with an idle one, with capability at its defaults (200 questions every 20 %), and
// with capability, alignment and leakage (`workloads.ts`) under the governor's ceiling of 20 %. The arms take turns in
// changing order, so that noise of the machine and garbage collection affect all of them equally. Repeats start from the
// same weights.
//   micro-world  the embedded model, all of it trained; 16 × 64 tokens
//   smollm2      SmolLM2-135M-Instruct with LoRA; 4 × 256 tokens, ARC-Challenge (needs npm run native, and the files)
//   npm run bench overhead [-- --model micro-world --arms none,idle,capability --steps 600 --repeats 1 --turn 20]
// Prints as median (minimum–maximum) over the repeats:
//   - seconds of each run, and their ratio to the run without callbacks of the same repeat (if arm `none` runs);
//   - overhead as session seconds / (wall − session seconds), the part of it that callbacks add to a session without any, and
//     a breakdown;
//   - the CPU time that hashes take in a run with measurements, as a share of the training's
//     (`integrity-cost.ts`);
//   - the cost of a step at which three callbacks have nothing to do, with and without the guards of TensorFlow.js, which
//     check every variable around every hook.
// Exits with 1 if a run ended in different weights, if the median of an arm exceeds `shareLimits`, if the measurement at
// the start or the end of a run is missing or incomplete, or if such a step costs the session 0.05 ms or more (0.1 % of a
// step of 50 ms), or if hashes take 0.1 % or more. The default takes about five minutes on two cores; in shorter runs fixed costs weigh more.
import {
  everyPercent,
  openSession,
  PeriodicCallback,
  PeriodicCapabilityCallback,
  PeriodicEvalError,
  type TrainerCallback,
} from "@periodic-eval/core";
import { fingerprintWeights, inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import { readRun } from "@periodic-eval/store";
import { type CheckpointLM, useBackend } from "@periodic-eval/models";
import { AdamW, tokenLosses, total } from "@periodic-eval/trainers";
import * as tf from "@tensorflow/tfjs-core";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { machineLine } from "./doc-section.ts";
import { cpuSeconds, hashingCost } from "./integrity-cost.ts";
import { median } from "./median.ts";
import { oneOf } from "./one-of.ts";
import { sendResults, type Comparison } from "./report/results.ts";
import { workloads } from "./workloads.ts";

const { values } = parseArgs({
  options: {
    model: { type: "string", default: "micro-world" },
    arms: { type: "string", default: "none,idle,capability" },
    steps: { type: "string", default: "600" },
    repeats: { type: "string", default: "1" },
    turn: { type: "string", default: "20" },
  },
});
const [steps, repeats, turn] = [count("steps"), count("repeats"), count("turn")];
const idleLimitMilliseconds = 0.05;
/** Maximum CPU time of hashes, in percent of the training's. */
const integrityLimitPercent = 0.1;
/** The governor's ceiling with all callbacks, and the documented number of points by which overhead may exceed it. */
const [ceilingPercent, pointsAbove] = [20, 2];
/** Maximum of each arm's median overhead, in percent of training time. */
const shareLimits: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  "micro-world": { idle: 0.1, capability: 20 },
  smollm2: { idle: 0.1, capability: 10, all: ceilingPercent + pointsAbove },
};

function count(name: keyof typeof values): number {
  const value = Number(values[name]);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new PeriodicEvalError({
    code: "config",
    where: `--${name}`,
    got: values[name],
    expected: "an integer of 1 or more",
    fix: "Correct the number.",
  });
}

const makeWorkload = oneOf("--model", values.model, workloads);
const backend = await useBackend();
const { tokenizer, load, stream, batch, length, questions, all } = await makeWorkload();

/** The callbacks of an arm, and the governor's ceiling; null for none. */
interface Arm {
  readonly callbacks: () => readonly TrainerCallback[];
  readonly overheadPercent: number | null;
}

const arms: Readonly<Record<string, Arm>> = {
  none: { callbacks: () => [], overheadPercent: null },
  idle: { callbacks: () => [{ id: "idle", onStepEnd() {} }], overheadPercent: null },
  capability: {
    callbacks: () => [new PeriodicCapabilityCallback({ questions })],
    overheadPercent: null,
  },
  all: { callbacks: all, overheadPercent: ceilingPercent },
};
const names = values.arms.split(",");

/** Timings of one run. */
interface Outcome {
  readonly wallSeconds: number;
  /** The part of `wallSeconds` inside calls of the session. */
  readonly sessionSeconds: number;
  /** CPU seconds of training, without the session. */
  readonly trainingCpuSeconds: number;
  readonly hashingCpuSeconds: number;
  readonly weights: string;
  readonly parts: Parts;
}

async function openTraining(run: string, { callbacks: open, overheadPercent }: Arm) {
  const callbacks = open();
  const measuredIds = callbacks
    .filter((callback) => callback instanceof PeriodicCallback)
    .map(({ id }) => id);
  const model = await load();
  const optimizer = new AdamW(model.trainables(), { weightDecay: 0.01 });
  const session = openSession({
    run,
    maxSteps: steps,
    model: inMemory(model, tokenizer),
    guards: tfjsGuards(model, optimizer),
    callbacks,
    budget: { overheadPercent, graceSeconds: 0 },
    loggers: [],
  });
  let [step, wallSeconds, sessionSeconds, trainingCpuSeconds] = [0, 0, 0, 0];
  const timed = async (call: () => Promise<unknown>) => {
    const start = performance.now();
    await call();
    sessionSeconds += (performance.now() - start) / 1000;
  };
  return {
    async advance(by: number): Promise<void> {
      const start = performance.now();
      if (step === 0) await timed(() => session.begin());
      for (let i = 0; i < by; i += 1) {
        const before = cpuSeconds();
        const loss = trainStep(model, optimizer, step++);
        trainingCpuSeconds += cpuSeconds() - before;
        await timed(() => session.stepEnd({ metrics: { loss } }));
      }
      wallSeconds += (performance.now() - start) / 1000;
    },
    async finish(): Promise<Outcome> {
      const start = performance.now();
      await timed(() => session.end());
      await timed(() => session.close());
      wallSeconds += (performance.now() - start) / 1000;
      const weights = await fingerprintWeights(model.weights());
      optimizer.dispose();
      model.dispose();
      const hashingCpuSeconds = await hashingCost(run);
      const parts = await partsOf(run, measuredIds);
      return { wallSeconds, sessionSeconds, trainingCpuSeconds, hashingCpuSeconds, weights, parts };
    },
  };
}

/** Takes one step of next-token training on `batch` windows of the stream. Returns the mean loss in nats per token. */
function trainStep(model: CheckpointLM, optimizer: AdamW, step: number): number {
  return tf.tidy(() => {
    const starts = Array.from(
      { length: batch },
      (_, i) => ((step * batch + i) * length) % (stream.length - length - 1),
    );
    const windows = (from: number) => starts.flatMap((at) => stream.slice(at + from, at + from + length));
    const ids = tf.tensor2d(windows(0), [batch, length], "int32");
    const targets = tf.tensor1d(windows(1), "int32");
    const rows = tf.range(0, batch * length, 1, "int32");
    const sum = () => total(tokenLosses(model, { ids, rows, targets }, () => () => 0.5));
    const { value, grads } = tf.variableGrads(sum, [...model.trainables()]);
    optimizer.apply(grads, 1e-5, 1 / targets.size);
    return value.dataSync()[0]! / targets.size;
  });
}

interface Parts {
  /** One line per callback: the steps, statuses and item counts of its measurements. */
  readonly measurements: readonly string[];
  /** Measurements at start and end that are missing or incomplete. */
  readonly incomplete: readonly string[];
  readonly measuring: number;
  readonly guards: number;
  readonly total: number;
}

/** Sums the timings of a run's snapshots, and checks the measurements of `measuredIds` at start and end. */
async function partsOf(run: string, measuredIds: readonly string[]): Promise<Parts> {
  const snapshots = (await readRun(run)).phases.flatMap((phase) => phase.snapshots);
  const sum = (part: "measure_seconds" | "guards_seconds" | "total_seconds") =>
    snapshots.reduce((total, { timing }) => total + timing[part], 0);
  const measurementsOf = (id: string) =>
    snapshots
      .filter((snapshot) => snapshot.id === id)
      .map(({ step, status, timing }) => `${step} ${status} ${timing.items}`)
      .join("; ");
  const incomplete = measuredIds.flatMap((id) =>
    [0, steps].flatMap((step) => {
      const status = snapshots.find((candidate) => candidate.id === id && candidate.step === step)?.status;
      return status === "complete" ? [] : [`${id} at step ${step}: ${status ?? "missing"}`];
    }),
  );
  const ids = [...new Set(snapshots.map(({ id }) => id))];
  return {
    measurements: ids.map((id) => `${id} (step, status, items): ${measurementsOf(id)}`),
    incomplete,
    measuring: sum("measure_seconds"),
    guards: sum("guards_seconds"),
    total: sum("total_seconds"),
  };
}

/** Milliseconds of a `stepEnd` at which three callbacks have nothing to do: the minimum over thirty short batches. */
async function idleStep(run: string, isGuarded: boolean): Promise<number> {
  const model = await load();
  const optimizer = new AdamW(model.trainables());
  const options = { questions, subsample: { n: 1, seed: 1 }, schedule: [everyPercent(50)] };
  const session = openSession({
    run,
    maxSteps: 1_000_000,
    model: inMemory(model, tokenizer),
    guards: isGuarded ? tfjsGuards(model, optimizer) : [],
    callbacks: ["a", "b", "c"].map((id) => new PeriodicCapabilityCallback({ ...options, id })),
    loggers: [],
  });
  await session.begin();
  const times: number[] = [];
  for (let batch = 0; batch < 30; batch += 1) {
    const start = performance.now();
    for (let step = 0; step < 500; step += 1) await session.stepEnd();
    times.push((performance.now() - start) / 500);
  }
  await session.close();
  optimizer.dispose();
  model.dispose();
  return Math.min(...times);
}

/** Formats median and range: `12.3 (11.9–14.0)`. */
function spread(numbers: readonly number[], digits: number): string {
  const [least, greatest] = [Math.min(...numbers), Math.max(...numbers)];
  return `${median(numbers).toFixed(digits)} (${least.toFixed(digits)}–${greatest.toFixed(digits)})`;
}

/** Returns the arms rotated by the turn, and reversed in every second round. */
function orderAt(turn: number): readonly string[] {
  const first = turn % names.length;
  const turned = [...names.slice(first), ...names.slice(0, first)];
  return Math.floor(turn / names.length) % 2 === 0 ? turned : turned.toReversed();
}

const percentOf = (seconds: number, wallSeconds: number) => (100 * seconds) / (wallSeconds - seconds);

/** Prints an arm's measurements over the repeats. Returns whether it stayed within its limit. */
function report(name: string, outcomes: readonly Outcome[], without: readonly Outcome[]): boolean {
  const wall = spread(
    outcomes.map(({ wallSeconds }) => wallSeconds),
    1,
  );
  const ratios = without.map(({ wallSeconds }, i) => outcomes[i]!.wallSeconds / wallSeconds);
  const ratio = without.length === 0 ? "" : `   × ${spread(ratios, 3)}`;
  const shares = outcomes.map(({ wallSeconds, sessionSeconds }) => percentOf(sessionSeconds, wallSeconds));
  const added = outcomes.map(({ wallSeconds, sessionSeconds }, i) =>
    percentOf(sessionSeconds - (without[i]?.sessionSeconds ?? 0), wallSeconds),
  );
  const limit = shareLimits[values.model]![name];
  const what = without.length === 0 ? "in total" : "added by callbacks";
  const allowed = limit === undefined ? "" : `, ${what} ${spread(added, 3)} %, limit ${limit} %`;
  console.log(`${name.padEnd(11)} ${wall} s${ratio}   in the session ${spread(shares, 3)} %${allowed}`);
  return limit === undefined || median(added) < limit;
}

/** Compares the wall-clock time of each arm with that of the arm without callbacks. */
function comparisonsOf(outcomes: Readonly<Record<string, readonly Outcome[]>>): Comparison[] {
  const secondsOf = (name: string) => outcomes[name]!.map(({ wallSeconds }) => wallSeconds);
  return names
    .filter((name) => name !== "none" && outcomes["none"] !== undefined)
    .map((name) => ({
      name: `${values.model}, ${name}, ${steps} steps`,
      unit: "seconds",
      ratio: "share",
      peer: "no callbacks",
      ours: secondsOf(name),
      peers: secondsOf("none"),
    }));
}

function reportParts(name: string, outcomes: readonly Outcome[]): void {
  const of = (value: (outcome: Outcome) => number) => spread(outcomes.map(value), 3);
  const { measurements } = outcomes[0]!.parts;
  if (measurements.length === 0) return;
  console.log(`${name}, seconds per run:`);
  console.log(`  measuring ${of(({ parts }) => parts.measuring)}`);
  console.log(`  guards ${of(({ parts }) => parts.guards)}`);
  const windows = of(({ parts: { total, measuring, guards } }) => total - measuring - guards);
  console.log(`  other work in the window ${windows}`);
  const outside = of(({ parts, sessionSeconds }) => sessionSeconds - parts.total);
  console.log(`  outside the window (preparing, writing, hooks) ${outside}`);
  for (const line of measurements) console.log(`  ${line}`);
}

/** Prints what hashes cost an arm. Returns whether it stayed within the limit. */
function reportIntegrity(name: string, outcomes: readonly Outcome[]): boolean {
  if (outcomes[0]!.parts.measurements.length === 0) return true;
  const hashing = outcomes.map(
    ({ hashingCpuSeconds, trainingCpuSeconds }) => (100 * hashingCpuSeconds) / trainingCpuSeconds,
  );
  console.log(
    `${name}, CPU time in percent of training: hashes ${spread(hashing, 4)}, limit ${integrityLimitPercent}`,
  );
  return median(hashing) < integrityLimitPercent;
}

const folder = await mkdtemp(join(tmpdir(), "overhead-"));
try {
  console.log(
    `${machineLine(backend.name)}: ${values.model}, ${repeats} × ${steps} steps of ${batch} × ${length} tokens`,
  );
  const outcomes: Readonly<Record<string, Outcome[]>> = Object.fromEntries(names.map((name) => [name, []]));
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    const open: Record<string, Awaited<ReturnType<typeof openTraining>>> = {};
    for (const name of names)
      open[name] = await openTraining(join(folder, `${name}-${repeat}`), oneOf("--arms", name, arms));
    for (let done = 0; done < steps; done += turn)
      for (const name of orderAt(repeat + done / turn))
        await open[name]!.advance(Math.min(turn, steps - done));
    for (const name of names) outcomes[name]!.push(await open[name]!.finish());
  }
  const overLimit = names.filter((name) => !report(name, outcomes[name]!, outcomes["none"] ?? []));
  for (const name of names) reportParts(name, outcomes[name]!);
  for (const name of names) if (!reportIntegrity(name, outcomes[name]!)) overLimit.push(`hashes of ${name}`);
  const ended = names.flatMap((name) => outcomes[name]!.map((outcome) => outcome.weights));
  const weights = new Set(ended);
  if (ended.length > 1) console.log(`final weights bit-identical in all runs: ${weights.size === 1}`);
  const idle = await idleStep(join(folder, "idle-step"), false);
  const guarded = await idleStep(join(folder, "guarded-idle-step"), true);
  console.log(
    `a step with three idle callbacks: ${idle.toFixed(4)} ms, limit ${idleLimitMilliseconds} ms; ` +
      `with guards ${guarded.toFixed(4)} ms`,
  );
  if (idle >= idleLimitMilliseconds) overLimit.push("a step");
  if (overLimit.length > 0) console.log(`over the limit: ${overLimit.join(", ")}`);
  const incomplete = names.flatMap((name) =>
    outcomes[name]!.flatMap(({ parts }, repeat) =>
      parts.incomplete.map((problem) => `${name}, repeat ${repeat + 1}, ${problem}`),
    ),
  );
  for (const problem of incomplete) console.log(`start or end incomplete: ${problem}`);
  if (weights.size !== 1 || overLimit.length > 0 || incomplete.length > 0) process.exitCode = 1;
  sendResults({ machine: machineLine(backend.name), comparisons: comparisonsOf(outcomes) });
} finally {
  await rm(folder, { recursive: true });
}
