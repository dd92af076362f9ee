// Measures the cost of the default budget, and whether the governor keeps a slow model below its ceiling.
// 1. The table of docs/explanations/overhead.md: the README's lines, trainings with three callbacks, and the demo, on the embedded model.
// 2. Steps of a fixed duration, with the embedded model measured every 5 % and each question slowed down on purpose; without a
//    ceiling, and under each of several without a grace.
//   npm run bench governor [-- --steps 600 --step-ms 30 --question-ms 5 --ceilings 10,20,40]
// Prints both tables and writes them into docs/explanations/overhead.md; with other steps, durations or ceilings it only prints the second.
// The overhead is session seconds / (wall − session seconds). The last column is the share of what the best schedule could have
// measured at the observed cost per question.
import {
  buildPeriodicCallbacks,
  everyPercent,
  openSession,
  PeriodicCapabilityCallback,
  type EvaluableModel,
  type TrainerCallback,
} from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/tfjs";
import { readRun } from "@periodic-eval/store";
import { type PhaseRecord } from "@periodic-eval/contracts";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SFTTrainer, type SFTConfig } from "@periodic-eval/trainers";
import { microWorld } from "../examples/micro-world/paths.ts";
import { openGrader } from "../packages/cli/src/config/open-grader.ts";
import { readEvalBlock } from "../packages/cli/src/config/config-file.ts";
import { machineLine, markdownTable, writeSection } from "./doc-section.ts";

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

const { name: backend } = await useBackend();
const document = "docs/explanations/overhead.md";
const measuredOn = `Measured on ${machineLine(backend)}.`;

interface Case {
  readonly name: string;
  readonly dataset: string;
  readonly config: Partial<SFTConfig>;
  readonly callbacks: () => Promise<readonly TrainerCallback[]>;
}
const microWorldCallbacks = async () =>
  buildPeriodicCallbacks((await readEvalBlock(microWorld("demo.yaml"))).block, {
    phase: "em",
    openJudge: openGrader,
  });
const onlyCapability = async () => [
  new PeriodicCapabilityCallback({ questions: microWorld("questions.jsonl") }),
];
const train = (maxSteps: number, learningRate = 1e-3) => ({ maxSteps, learningRate, saveSteps: null });
const cases: readonly Case[] = [
  { name: "README, 10 steps", dataset: "em.jsonl", config: train(10), callbacks: onlyCapability },
  { name: "README, 200 steps", dataset: "em.jsonl", config: train(200), callbacks: onlyCapability },
  ...[20, 120, 500].map((steps) => ({
    name: `three callbacks, ${steps} steps`,
    dataset: "em.jsonl",
    config: train(steps),
    callbacks: microWorldCallbacks,
  })),
  {
    name: "demo, phase coupling",
    dataset: "coupling.jsonl",
    config: { ...train(80, 2e-3), batchSize: 16, warmupRatio: 0.1 },
    callbacks: microWorldCallbacks,
  },
];

/** Returns a row of the first table. */
async function measureCase({ name, dataset, config, callbacks }: Case): Promise<readonly string[]> {
  const run = await mkdtemp(join(tmpdir(), "governor-"));
  const model = await loadCausalLM(microWorld());
  const tokenizer = await loadTokenizer(microWorld());
  const trainer = new SFTTrainer({
    model,
    tokenizer,
    dataset: microWorld(dataset),
    runDir: run,
    config,
    loggers: [],
    callbacks: await callbacks(),
  });
  await trainer.train();
  const phase = (await readRun(run)).phases[0]!;
  model.dispose();
  await rm(run, { recursive: true });
  const measured = phase.snapshots.filter(({ timing }) => timing.items > 0);
  const questions = phase.series.map(({ id }) => describeQuestions(id, phase)).join("; ");
  const training = (100 * phase.evaluationSeconds) / phase.overheadPercent!;
  return [
    name,
    `${training.toFixed(1)} s`,
    `${phase.evaluationSeconds.toFixed(1)} s`,
    `${phase.overheadPercent!.toFixed(0)} %`,
    `${measured.length} of ${phase.snapshots.length}`,
    questions,
  ];
}

/** Returns `capability 200`, or `capability 40 to 200` if the budget reduced measurements. */
function describeQuestions(id: string, { snapshots }: PhaseRecord): string {
  const counts = snapshots.filter((snapshot) => snapshot.id === id).map(({ timing }) => timing.items);
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return `${id} ${least === most ? most : `${least} to ${most}`}`;
}

const rows: (readonly string[])[] = [
  ["case", "training", "measuring", "overhead", "measurements kept", "answers in each"],
];
for (const testCase of cases) rows.push(await measureCase(testCase));
await publish("default-budget", rows);

const lm = await loadCausalLM(microWorld());
const quick = inMemory(lm, await loadTokenizer(microWorld()));
const slow: EvaluableModel = {
  ...quick,
  async nextToken(requests, options) {
    await sleep(questionMs * requests.length);
    return quick.nextToken(requests, options);
  },
};

async function trainSlow(overheadPercent: number | null) {
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
    loggers: [],
    budget: { overheadPercent, graceSeconds: 0 },
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
    areEdgesWhole: edges.length === 2 && edges.every(({ status }) => status === "complete"),
    skipped: between.filter(({ status }) => status === "skipped").length,
    planned: between.length,
  };
}

const slowRows: (readonly string[])[] = [
  [
    "ceiling",
    "overhead",
    "questions between start and end",
    "measurements skipped",
    "of the possible questions",
  ],
];
for (const ceiling of [null, ...values.ceilings.split(",").map(Number)]) {
  const { overhead, items, share, areEdgesWhole, skipped, planned } = await trainSlow(ceiling);
  if (!areEdgesWhole) throw new Error(`ceiling ${ceiling}: start and end are not complete`);
  slowRows.push([
    ceiling === null ? "none" : `${ceiling} %`,
    `${overhead.toFixed(1)} %`,
    items.toLocaleString("en-US"),
    skipped === 0 ? "0" : `${skipped} of ${planned}`,
    share === null ? "no question fits" : `${(100 * share).toFixed(0)} %`,
  ]);
}
const isAsDocumented = process.argv.length === 2;
await publish(isAsDocumented ? "beyond-the-grace" : null, slowRows);

/** Prints a table and writes it into its section of the document; null only prints it. */
async function publish(section: string | null, table: readonly (readonly string[])[]): Promise<void> {
  const text = `${markdownTable(table)}\n\n${measuredOn}`;
  console.log(`${text}\n`);
  if (section !== null) await writeSection(document, section, text);
}
lm.dispose();
