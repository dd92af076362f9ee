// How long does the shipped suite take (MMLU 5-shot, GSM8K 8-shot, TruthfulQA, IFEval: 16,185 documents)?
// Measures blocks of consecutive documents at random places of each task, and scales to the whole task:
//   - log-likelihoods (MMLU, TruthfulQA): by the characters of prompts and choices, which are known for all documents;
//   - generated texts (GSM8K, IFEval): by the number of documents, because their lengths are not known before.
// The range is 95 % over blocks (t). --full measures every document instead.
//   npm run bench suite-time                                        # the embedded model
//   npm run bench suite-time -- --model smollm2                     # .cache/smollm2-135m-instruct (npm run native first)
//   npm run bench suite-time -- --model PATH --backend wasm --blocks 4 --documents 16 --tasks mmlu,gsm8k --full
// The data is read from ../shared/data, or from --data, or from the hub. The embedded model gets a context of 2,048 tokens, because
// GSM8K's texts do not fit into its own; its answers mean nothing. Texts end where the model ends them.
import {
  measure,
  PeriodicEvalError,
  type AnyEvaluation,
  type EvaluableModel,
  type Row,
} from "@periodic-eval/core";
import { openCheckpoint, useBackend } from "@periodic-eval/models";
import { datasetOf, defaultSuitePath, folderNames, readSuite, taskNamed, tasks } from "@periodic-eval/tasks";
import { existsSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { meanOverRuns } from "@periodic-eval/core/statistics";
import { microWorld } from "../examples/micro-world/paths.ts";

/** The time that the described harness states for its suite. */
const describedMinutes = 30;
/** Tokens of the embedded model's context here. */
const contextLength = 2048;

const { values } = parseArgs({
  options: {
    model: { type: "string", default: "micro-world" },
    backend: { type: "string" },
    data: { type: "string", default: "../shared/data" },
    tasks: { type: "string" },
    blocks: { type: "string", default: "4" },
    documents: { type: "string", default: "8" },
    seed: { type: "string", default: "1" },
    full: { type: "boolean", default: false },
  },
});
const [blocks, documents, seed] = [count("blocks"), count("documents"), count("seed")];

function count(name: "blocks" | "documents" | "seed"): number {
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

const { folder, remove } = await modelFolder(values.model);
const backend = await useBackend(values.backend === undefined ? {} : { backend: values.backend });
const { model, dispose } = await openCheckpoint(folder);
const suite = await readSuite(defaultSuitePath);
const names = values.tasks?.split(",") ?? Object.keys(suite.tasks);
const rows = [];
try {
  for (const name of names) {
    const { task, characters, isGenerated } = await openTask(name);
    rows.push(await timeOf(name, task, characters, isGenerated));
    console.log(rowText(rows.at(-1)!));
  }
} finally {
  await dispose();
  await remove();
}
const total = rows.reduce((sum, { seconds }) => sum + seconds, 0);
const spread = Math.hypot(...rows.map(({ half }) => half ?? 0));
const isScaled = rows.some(({ half }) => half !== 0);
const range = !isScaled ? "measured whole" : blocks < 2 ? "no range" : `± ${minutes(spread)}`;
console.log(
  `whole suite: ${minutes(total)} min (${range}); described: about ${describedMinutes} min on a GPU`,
);
const [cpu] = cpus();
console.log(
  `${values.model} on ${backend.name}, ${cpus().length} cores of ${cpu?.model ?? "?"}, Node ${process.versions.node}, ${new Date().toISOString().slice(0, 10)}`,
);

/** Returns the folder of a model. The embedded model is copied, with a longer context. */
async function modelFolder(source: string): Promise<{ folder: string; remove: () => Promise<void> }> {
  if (source === "smollm2") return { folder: ".cache/smollm2-135m-instruct", remove: async () => {} };
  if (source !== "micro-world") return { folder: source, remove: async () => {} };
  const copy = await mkdtemp(join(tmpdir(), "suite-time-"));
  await cp(microWorld(), copy, { recursive: true });
  const config = JSON.parse(await readFile(microWorld("config.json"), "utf8")) as object;
  await writeFile(
    join(copy, "config.json"),
    JSON.stringify({ ...config, max_position_embeddings: contextLength }),
  );
  return { folder: copy, remove: () => rm(copy, { recursive: true }) };
}

/** Opens a task with the suite's settings. */
async function openTask(name: string) {
  const task = taskNamed(tasks, name, "--tasks");
  const { shots, limit = null } = suite.tasks[name] ?? {};
  const local = folderNames(name)
    .map((folder) => join(values.data, folder))
    .find((path) => existsSync(path));
  const data = local ?? datasetOf(name)!.source;
  const evaluation = task.open({ data, limit, ...(shots !== undefined && { shots }) });
  const isGenerated = (evaluation.needs as readonly string[]).includes("generate");
  return { task: evaluation, characters: charactersOf, isGenerated };
}

/** Characters of a document's prompt and choices. */
function charactersOf(item: Row): number {
  const { prompt, choices = [] } = item as Row & { prompt?: { text?: string }; choices?: readonly string[] };
  return (prompt?.text ?? JSON.stringify(prompt ?? item)).length + choices.join("").length;
}

interface TaskTime {
  readonly name: string;
  readonly all: number;
  readonly measured: number;
  readonly measuredSeconds: number;
  /** Time of the whole task. */
  readonly seconds: number;
  /** Half of the 95 % range; 0 if the task was measured whole, null without a range. */
  readonly half: number | null;
}

async function timeOf(
  name: string,
  evaluation: AnyEvaluation,
  characters: (item: Row) => number,
  isGenerated: boolean,
): Promise<TaskTime> {
  const items = (await evaluation.items(model as never)) as readonly Row[];
  const sizeOf = (some: readonly Row[]) =>
    isGenerated ? some.length : some.reduce((sum, item) => sum + characters(item), 0);
  // The first call compiles kernels.
  await secondsOf(evaluation, model, items.slice(0, 1));
  if (values.full) {
    const seconds = await secondsOf(evaluation, model, items);
    return { name, all: items.length, measured: items.length, measuredSeconds: seconds, seconds, half: 0 };
  }
  const random = randomFrom(seed);
  const perSize: number[] = [];
  let [measured, measuredSeconds, size] = [0, 0, 0];
  for (let block = 0; block < blocks; block++) {
    const start = Math.floor(random() * Math.max(1, items.length - documents + 1));
    const some = items.slice(start, start + documents);
    const seconds = await secondsOf(evaluation, model, some);
    perSize.push(seconds / sizeOf(some));
    measured += some.length;
    measuredSeconds += seconds;
    size += sizeOf(some);
  }
  const whole = sizeOf(items);
  const { ci95, value } = meanOverRuns(perSize);
  const half = ci95 === null ? null : (ci95[1] - value!) * whole;
  return {
    name,
    all: items.length,
    measured,
    measuredSeconds,
    seconds: (measuredSeconds / size) * whole,
    half,
  };
}

async function secondsOf(
  evaluation: AnyEvaluation,
  subject: EvaluableModel,
  items: readonly Row[],
): Promise<number> {
  const start = performance.now();
  await measure({ ...evaluation, items: () => items } as AnyEvaluation, subject);
  return (performance.now() - start) / 1000;
}

/** Returns mulberry32: the same blocks on every machine. */
function randomFrom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function minutes(seconds: number): string {
  return (seconds / 60).toFixed(1);
}

function rowText({ name, all, measured, measuredSeconds, seconds, half }: TaskTime): string {
  const range = half === null ? "" : half === 0 ? " (measured whole)" : ` ± ${minutes(half)}`;
  return `${name}: ${measured} of ${all} documents in ${measuredSeconds.toFixed(1)} s; whole task ${minutes(seconds)} min${range}`;
}
