// What does watching cost?
// The same training three times: without callbacks, with an idle one, with capability at its defaults (200 questions
// every 20 %). The three advance in turns of 20 steps, in a rotating order, so that the machine's moods hit all alike.
//   npm run bench overhead [-- --steps 600]
// Printed: seconds of each, overhead as evaluation seconds / (wall - evaluation seconds), its parts, and whether the
// three ended in bit-identical weights.
import {
  openSession,
  PeriodicCapabilityCallback,
  type Session,
  type TrainerCallback,
} from "@periodic-eval/core";
import { fingerprintWeights, inMemory, tfjsGuards } from "@periodic-eval/core/tfjs";
import { readRun } from "@periodic-eval/core/snapshots";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { AdamW, crossEntropySum } from "@periodic-eval/trainers";
import * as tf from "@tensorflow/tfjs-core";
import { readFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { world } from "../examples/micro-world/paths.ts";

const { values } = parseArgs({
  options: { steps: { type: "string", default: "600" }, turn: { type: "string", default: "20" } },
});
const steps = Number(values.steps);
const turn = Number(values.turn);
const [batchSize, length] = [16, 64];

const backend = await useBackend();
const tokenizer = await loadTokenizer(world());
const stream = tokenizer.encode(readFileSync(world("coupling.jsonl"), "utf8"));
const runs = await mkdtemp(join(tmpdir(), "overhead-"));

interface Arm {
  readonly name: string;
  advance(count: number): Promise<void>;
  finish(): Promise<string>;
  wallSeconds: number;
  stepEndSeconds: number;
}

async function openArm(name: string, callbacks: readonly TrainerCallback[]): Promise<Arm> {
  const model = await loadCausalLM(world());
  const optimizer = new AdamW(model.trainables(), { weightDecay: 0.01 });
  const session: Session = openSession({
    run: join(runs, name),
    maxSteps: steps,
    model: inMemory(model, tokenizer),
    guards: tfjsGuards(model, optimizer),
    callbacks,
  });
  let step = 0;
  const arm: Arm = {
    name,
    wallSeconds: 0,
    stepEndSeconds: 0,
    async advance(count) {
      const start = performance.now();
      if (step === 0) await session.begin();
      arm.stepEndSeconds += (performance.now() - start) / 1000;
      for (let i = 0; i < count; i += 1) {
        const loss = trainStep(model, optimizer, step++);
        const before = performance.now();
        await session.stepEnd({ metrics: { loss } });
        arm.stepEndSeconds += (performance.now() - before) / 1000;
      }
      arm.wallSeconds += (performance.now() - start) / 1000;
    },
    async finish() {
      const start = performance.now();
      await session.end();
      await session.close();
      arm.stepEndSeconds += (performance.now() - start) / 1000;
      arm.wallSeconds += (performance.now() - start) / 1000;
      return fingerprintWeights(model.weights());
    },
  };
  return arm;
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
    const { value, grads } = tf.variableGrads(
      () =>
        tf.div(
          crossEntropySum(
            model.trainingLogits(ids, rows, () => () => 0.5),
            targets,
          ),
          targets.size,
        ) as tf.Scalar,
      [...model.trainables()],
    );
    optimizer.apply(grads, 1e-5);
    return value.dataSync()[0]!;
  });
}

const idle: TrainerCallback = { id: "idle", onStepEnd() {} };
const arms = [
  await openArm("none", []),
  await openArm("idle", [idle]),
  await openArm("capability", [new PeriodicCapabilityCallback({ questions: world("questions.jsonl") })]),
];

console.log(
  `${cpus()[0]?.model ?? "unknown processor"}, ${backend.name}, ${steps} steps of ${batchSize} x ${length} tokens each`,
);
for (let done = 0; done < steps; done += turn) {
  const first = (done / turn) % arms.length;
  for (const arm of [...arms.slice(first), ...arms.slice(0, first)])
    await arm.advance(Math.min(turn, steps - done));
}
const weights: string[] = [];
for (const arm of arms) weights.push(await arm.finish());

const baseline = arms[0]!.wallSeconds;
for (const { name, wallSeconds, stepEndSeconds } of arms) {
  const share = (100 * stepEndSeconds) / (wallSeconds - stepEndSeconds);
  console.log(
    `${name.padEnd(11)} ${wallSeconds.toFixed(1).padStart(7)} s   x ${(wallSeconds / baseline).toFixed(4)}   in the session ${stepEndSeconds.toFixed(3)} s = ${share.toFixed(3)} %`,
  );
}
const run = await readRun(join(runs, "capability"));
const snapshots = run.phases.flatMap((phase) => phase.snapshots);
const sum = (part: (s: (typeof snapshots)[number]) => number) =>
  snapshots.reduce((total, s) => total + part(s), 0);
console.log(
  `capability: ${snapshots.length} firings of ${snapshots[0]?.timing.items} questions; measuring ${sum((s) => s.timing.measure_seconds).toFixed(2)} s, ` +
    `guards ${sum((s) => s.timing.guards_seconds).toFixed(2)} s, all ${sum((s) => s.timing.total_seconds).toFixed(2)} s; ` +
    `overhead ${snapshots.at(-1)?.timing.overhead_percent?.toFixed(2)} %`,
);
console.log(`final weights bit-identical in all three: ${weights.every((w) => w === weights[0])}`);
