// Does the governor keep overhead below its ceiling on a slow model?
// Steps have a fixed duration. The embedded model is measured every 5 %, and each question is slowed down on purpose. Runs once
// without a ceiling and once with each ceiling.
//   npm run bench governor [-- --steps 600 --step-ms 30 --question-ms 5 --ceilings 10,20,40]
// Prints the overhead as session seconds / (wall − session seconds), the items measured between start and end, and their
// share of what the best schedule could have measured at the observed cost per question.
import {
  everyPercent,
  openSession,
  PeriodicCapabilityCallback,
  type EvaluableModel,
} from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/core/tfjs";
import { readRun } from "@periodic-eval/core/snapshots";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { microWorld } from "../examples/micro-world/paths.ts";

const { values } = parseArgs({
  options: {
    steps: { type: "string", default: "600" },
    "step-ms": { type: "string", default: "30" },
    "question-ms": { type: "string", default: "5" },
    ceilings: { type: "string", default: "10,20,40" },
  },
});
const [steps, stepMs, questionMs] = [values.steps, values["step-ms"], values["question-ms"]].map(Number) as [
  number,
  number,
  number,
];
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

await useBackend();
const lm = await loadCausalLM(microWorld());
const quick = inMemory(lm, await loadTokenizer(microWorld()));
const slow: EvaluableModel = {
  ...quick,
  async nextToken(requests, options) {
    await sleep(questionMs * requests.length);
    return quick.nextToken(requests, options);
  },
};

async function train(overheadPercent: number | null) {
  const run = await mkdtemp(join(tmpdir(), "governor-"));
  const capability = new PeriodicCapabilityCallback({
    questions: microWorld("questions.jsonl"),
    subsample: { n: 60, seed: 42 },
    schedule: [everyPercent(5)],
  });
  const session = openSession({
    run,
    maxSteps: steps,
    model: slow,
    callbacks: [capability],
    budget: { overheadPercent },
  });
  const began = performance.now();
  let trained = 0;
  await session.begin();
  for (let step = 0; step < steps; step++) {
    const at = performance.now();
    await sleep(stepMs);
    trained += performance.now() - at;
    await session.stepEnd();
  }
  await session.end();
  await session.close();
  const wall = performance.now() - began;
  const snapshots = (await readRun(run)).phases[0]!.snapshots;
  await rm(run, { recursive: true });
  const edges = snapshots.filter(({ step }) => step === 0 || step === steps);
  const between = snapshots.filter(({ step }) => step !== 0 && step !== steps);
  const items = between.reduce((sum, { timing }) => sum + timing.items, 0);
  const secondsOf = (some: typeof snapshots) =>
    some.reduce((sum, { timing }) => sum + timing.total_seconds, 0);
  const all = edges.reduce((sum, { timing }) => sum + timing.items, items);
  const possible =
    overheadPercent === null
      ? Infinity
      : ((overheadPercent / 100) * (trained / 1000) - secondsOf(edges)) / (secondsOf(snapshots) / all);
  return {
    overhead: (100 * (wall - trained)) / trained,
    items,
    share: possible <= 0 ? null : items / Math.min(possible, 60 * between.length),
    areEdgesComplete: edges.length === 2 && edges.every(({ status }) => status === "complete"),
    skipped: between.filter(({ status }) => status === "skipped").length,
  };
}

for (const ceiling of [null, ...values.ceilings.split(",").map(Number)]) {
  const { overhead, items, share, areEdgesComplete, skipped } = await train(ceiling);
  const label = ceiling === null ? "no ceiling" : `ceiling ${ceiling} %`;
  console.log(
    `${label.padEnd(14)} overhead ${overhead.toFixed(1)} %, ${items} items between start and end (${share === null ? "none possible" : `${(100 * share).toFixed(0)} % of the possible items`}), ${skipped} measurements skipped, start and end ${areEdgesComplete ? "complete" : "INCOMPLETE"}`,
  );
}
lm.dispose();
