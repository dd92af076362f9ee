// What does watching cost?
// The same training three times: without callbacks, with an idle one, with capability at its defaults (200 questions
// every 20 %). The three advance in turns of 20 steps, in each of their six orders by turns, so that the machine's moods,
// and what one leaves to be collected after it, hit all alike; the whole is repeated, from the same weights.
//   npm run bench overhead [-- --steps 600 --repeats 1 --turn 20]
// Printed, each as median (least–greatest) over the repeats: seconds of each training, its ratio to the one without
// callbacks of the same repeat, the share spent in the session as session seconds / (wall − session seconds), what of it
// the callback adds to the session without one, and that share's parts; and what a step costs at which three callbacks have nothing to do, alone and inside the guards of
// TensorFlow.js, which look at every variable round every hook. Exits with 1 where a training ended in other weights,
// where an idle callback adds 0.1 % or more, by the median, or the default capability 20 % or more, or where such
// a step costs the session itself 0.05 ms or more: 0.1 % of a step of 50 ms. The default takes about five minutes on two
// cores; a share of a shorter training holds more of what a session costs once.
import {
  everyPercent,
  openSession,
  PeriodicCapabilityCallback,
  PeriodicEvalError,
  type TrainerCallback,
} from "@periodic-eval/core";
import { fingerprintWeights, inMemory, tfjsGuards } from "@periodic-eval/core/tfjs";
import { readRun } from "@periodic-eval/core/snapshots";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { AdamW, crossEntropySum } from "@periodic-eval/trainers";
import * as tf from "@tensorflow/tfjs-core";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { world } from "../examples/micro-world/paths.ts";
import { median } from "./median.ts";

const { values } = parseArgs({
  options: {
    steps: { type: "string", default: "600" },
    repeats: { type: "string", default: "1" },
    turn: { type: "string", default: "20" },
  },
});
const [steps, repeats, turn] = [count("steps"), count("repeats"), count("turn")];
const [batchSize, length] = [16, 64];
const idleLimitMilliseconds = 0.05;
/** Percent of training's own time that callbacks may add, by arm; medians are held to them. */
const shareLimits: Readonly<Record<string, number>> = { idle: 0.1, capability: 20 };

function count(name: keyof typeof values): number {
  const value = Number(values[name]);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new PeriodicEvalError({
    code: "config",
    where: `--${name}`,
    got: values[name],
    expected: "a whole number of 1 or more",
    fix: "Correct the number.",
  });
}

const backend = await useBackend();
const tokenizer = await loadTokenizer(world());
const stream = tokenizer.encode(readFileSync(world("coupling.jsonl"), "utf8"));
const questions = world("questions.jsonl");
const arms: Readonly<Record<string, () => readonly TrainerCallback[]>> = {
  none: () => [],
  idle: () => [{ id: "idle", onStepEnd() {} }],
  capability: () => [new PeriodicCapabilityCallback({ questions })],
};
const names = Object.keys(arms);

/** What one training of one repeat took. */
interface Outcome {
  readonly wallSeconds: number;
  /** Of these, inside calls of the session. */
  readonly sessionSeconds: number;
  readonly weights: string;
}

async function openTraining(run: string, callbacks: readonly TrainerCallback[]) {
  const model = await loadCausalLM(world());
  const optimizer = new AdamW(model.trainables(), { weightDecay: 0.01 });
  const session = openSession({
    run,
    maxSteps: steps,
    model: inMemory(model, tokenizer),
    guards: tfjsGuards(model, optimizer),
    callbacks,
    budget: { overheadPercent: null },
  });
  let [step, wallSeconds, sessionSeconds] = [0, 0, 0];
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
        const loss = trainStep(model, optimizer, step++);
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
      return { wallSeconds, sessionSeconds, weights };
    },
  };
}

type Model = Awaited<ReturnType<typeof loadCausalLM>>;

/** One step of next-token training on `batchSize` windows of the stream; the mean loss in nats per token. */
function trainStep(model: Model, optimizer: AdamW, step: number): number {
  return tf.tidy(() => {
    const starts = Array.from(
      { length: batchSize },
      (_, i) => ((step * batchSize + i) * length) % (stream.length - length - 1),
    );
    const ids = tf.tensor2d(
      starts.flatMap((at) => stream.slice(at, at + length)),
      [batchSize, length],
      "int32",
    );
    const targets = tf.tensor1d(
      starts.flatMap((at) => stream.slice(at + 1, at + length + 1)),
      "int32",
    );
    const rows = tf.range(0, batchSize * length, 1, "int32");
    const logits = () => model.trainingLogits(ids, rows, () => () => 0.5);
    const sum = () => crossEntropySum(logits(), targets);
    const { value, grads } = tf.variableGrads(sum, [...model.trainables()]);
    optimizer.apply(grads, 1e-5, 1 / targets.size);
    return value.dataSync()[0]! / targets.size;
  });
}

/** Seconds of the snapshots' parts, over all firings of a run. */
async function partsOf(run: string) {
  const snapshots = (await readRun(run)).phases.flatMap((phase) => phase.snapshots);
  const sum = (part: "measure_seconds" | "guards_seconds" | "total_seconds") =>
    snapshots.reduce((total, { timing }) => total + timing[part], 0);
  return {
    firings: snapshots.length,
    items: snapshots[0]?.timing.items ?? null,
    measuring: sum("measure_seconds"),
    guards: sum("guards_seconds"),
    total: sum("total_seconds"),
  };
}

/** Milliseconds of a `stepEnd` at which three callbacks have nothing to do: the fastest of thirty short batches. */
async function idleStep(run: string, isGuarded: boolean): Promise<number> {
  const model = await loadCausalLM(world());
  const optimizer = new AdamW(model.trainables());
  const options = { questions, subsample: { n: 1, seed: 1 }, schedule: [everyPercent(50)] };
  const session = openSession({
    run,
    maxSteps: 1_000_000,
    model: inMemory(model, tokenizer),
    guards: isGuarded ? tfjsGuards(model, optimizer) : [],
    callbacks: ["a", "b", "c"].map((id) => new PeriodicCapabilityCallback({ ...options, id })),
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

const orders = [
  [0, 1, 2],
  [2, 1, 0],
  [1, 2, 0],
  [0, 2, 1],
  [2, 0, 1],
  [1, 0, 2],
] as const;

/** `12.3 (11.9–14.0)`: median and range. */
function spread(numbers: readonly number[], digits: number): string {
  const [least, greatest] = [Math.min(...numbers), Math.max(...numbers)];
  return `${median(numbers).toFixed(digits)} (${least.toFixed(digits)}–${greatest.toFixed(digits)})`;
}

const folder = await mkdtemp(join(tmpdir(), "overhead-"));
try {
  const machine = `${cpus()[0]?.model ?? "unknown processor"}, Node ${process.versions.node}, ${backend.name}`;
  console.log(`${machine}: ${repeats} × ${steps} steps of ${batchSize} × ${length} tokens`);
  const outcomes: Readonly<Record<string, Outcome>>[] = [];
  const parts: Awaited<ReturnType<typeof partsOf>>[] = [];
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    const runOf = (name: string) => join(folder, `${name}-${repeat}`);
    const open = await Promise.all(names.map((name) => openTraining(runOf(name), arms[name]!())));
    for (let done = 0; done < steps; done += turn) {
      const order = orders[(repeat + done / turn) % orders.length]!;
      for (const i of order) await open[i]!.advance(Math.min(turn, steps - done));
    }
    const ended: Record<string, Outcome> = {};
    for (const [i, training] of open.entries()) ended[names[i]!] = await training.finish();
    outcomes.push(ended);
    parts.push(await partsOf(runOf("capability")));
  }
  const tooMuch: string[] = [];
  for (const name of names) {
    const of = (value: (outcome: Outcome, base: Outcome) => number) =>
      outcomes.map((each) => value(each[name]!, each["none"]!));
    const wall = of(({ wallSeconds }) => wallSeconds);
    const ratio = of(({ wallSeconds }, base) => wallSeconds / base.wallSeconds);
    const shareOf = (seconds: number, wallSeconds: number) => (100 * seconds) / (wallSeconds - seconds);
    const share = of(({ wallSeconds, sessionSeconds }) => shareOf(sessionSeconds, wallSeconds));
    const added = of(({ wallSeconds, sessionSeconds }, base) =>
      shareOf(sessionSeconds - base.sessionSeconds, wallSeconds),
    );
    const limit = shareLimits[name];
    if (limit !== undefined && !(median(added) < limit)) tooMuch.push(name);
    const allowed = limit === undefined ? "" : `, added ${spread(added, 3)} %, of ${limit} allowed`;
    console.log(
      `${name.padEnd(11)} ${spread(wall, 1)} s   × ${spread(ratio, 3)}   in the session ${spread(share, 3)} %${allowed}`,
    );
  }
  const of = (value: (part: (typeof parts)[number], i: number) => number) => spread(parts.map(value), 3);
  const { firings, items } = parts[0]!;
  console.log(`capability: ${firings} firings of ${items ?? "unknown"} questions, seconds of a training:`);
  console.log(`  measuring ${of(({ measuring }) => measuring)}`);
  console.log(`  guards ${of(({ guards }) => guards)}`);
  console.log(`  else in the window ${of(({ total, measuring, guards }) => total - measuring - guards)}`);
  const writing = of(({ total }, i) => outcomes[i]!["capability"]!.sessionSeconds - total);
  console.log(`  outside it (preparing, writing, hooks) ${writing}`);

  const weights = new Set(outcomes.flatMap((each) => names.map((name) => each[name]!.weights)));
  console.log(`final weights bit-identical in all: ${weights.size === 1}`);
  const idle = await idleStep(join(folder, "idle-step"), false);
  const guarded = await idleStep(join(folder, "guarded-idle-step"), true);
  console.log(
    `a step with three idle callbacks: ${idle.toFixed(4)} ms, of ${idleLimitMilliseconds} allowed; ` +
      `with the guards ${guarded.toFixed(4)} ms`,
  );
  if (idle >= idleLimitMilliseconds) tooMuch.push("a step");
  if (tooMuch.length > 0) console.log(`over the limit: ${tooMuch.join(", ")}`);
  if (weights.size !== 1 || tooMuch.length > 0) process.exitCode = 1;
} finally {
  await rm(folder, { recursive: true });
}
