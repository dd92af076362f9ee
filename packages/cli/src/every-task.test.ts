import { atStart, PeriodicCallback, type MetricValue } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/core/snapshots";
import { loadCausalLM, useBackend, type CheckpointLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { Evaluator, tasks, type MetricsRun } from "@periodic-eval/tasks";
import { SFTTrainer } from "@periodic-eval/trainers";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { mmluGroups } from "../../tasks/src/tasks/mmlu-subjects.ts";
import { linesOf, writeSmallRows } from "../../tasks/src/tasks/small-rows.test-data.ts";
import { keptTerminal } from "./kept-terminal.test-data.ts";
import { microWorld } from "./micro-world.ts";
import { checkpointOpener } from "./open-checkpoint.ts";
import { runCli } from "./program.ts";

/** How each is asked: few documents, some with examples, those that write in a chat, where the embedded model ends its turn. */
const asked: Readonly<
  Record<string, { readonly shots?: number; readonly limit?: number; readonly chat?: boolean }>
> = {
  arc_challenge: { shots: 2 },
  arc_easy: {},
  hellaswag: { shots: 1 },
  mmlu: { shots: 2, limit: 1 },
  truthfulqa_mc2: {},
  gsm8k: { shots: 2, chat: true },
  ifeval: { chat: true },
};
const names = Object.keys(asked);

const ifevalRows = [
  { key: 1, prompt: "Say hello.", instruction_id_list: ["punctuation:no_comma"], kwargs: [{}] },
  {
    key: 2,
    prompt: "A title, and two bullets.",
    instruction_id_list: ["detectable_format:title", "detectable_format:number_bullet_lists"],
    kwargs: [{}, { num_bullets: 2 }],
  },
  {
    key: 3,
    prompt: "What is the colour of the roofs in Cada?",
    instruction_id_list: ["length_constraints:number_words"],
    kwargs: [{ num_words: 400, relation: "less than" }],
  },
];

let [folder, data, checkpoint] = ["", "", ""];
let model: CheckpointLM;
let trainer: SFTTrainer;
/** The start looks of a short training whose callbacks are the tasks, by task. */
const inLoop = new Map<string, Readonly<Record<string, MetricValue>>>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "every-task-"));
  data = join(folder, "data");
  await mkdir(join(data, "ifeval"), { recursive: true });
  await writeFile(join(data, "ifeval", "input_data.jsonl"), linesOf(ifevalRows));
  await writeSmallRows(data, Object.values(mmluGroups).flat());
  // The embedded model, which reads further than it was trained for: IFEval writes 1,280 tokens at most.
  checkpoint = join(folder, "model");
  await cp(microWorld(), checkpoint, { recursive: true });
  const config = JSON.parse(await readFile(microWorld("config.json"), "utf8")) as object;
  await writeFile(
    join(checkpoint, "config.json"),
    JSON.stringify({ ...config, max_position_embeddings: 2048 }),
  );

  await useBackend({ backend: "wasm" });
  model = await loadCausalLM(checkpoint);
  trainer = new SFTTrainer({
    model,
    tokenizer: await loadTokenizer(checkpoint),
    dataset: microWorld("em.jsonl"),
    runDir: join(folder, "run"),
    config: { maxSteps: 1, batchSize: 2, learningRate: 0.01 },
    session: { budget: { overheadPercent: null } },
  });
});
afterAll(async () => {
  model.dispose();
  await rm(folder, { recursive: true });
});

const dataOf = (task: string) => join(data, task.startsWith("arc_") ? "arc" : task.split("_")[0]!);

const options = (task: string) => {
  const { shots, limit, chat = false } = asked[task]!;
  return {
    data: dataOf(task),
    ...(shots !== undefined && { shots }),
    ...(limit !== undefined && { limit }),
    ...(chat && { chat: {} }),
  };
};

const evaluatorOptions = (task: string, name: string) => {
  const { data: place, chat = null, ...settings } = options(task);
  return {
    name,
    tasks,
    suite: { schema_version: 1 as const, name: "one", tasks: { [task]: { ...settings, chat, data: place } } },
    results: join(folder, "results", task),
  };
};

/** What the command line prints of a task. */
async function onCommandLine(task: string): Promise<MetricsRun> {
  const { shots, limit, chat = false } = asked[task]!;
  const terminal = keptTerminal();
  const base = [
    "eval",
    "--model",
    checkpoint,
    "--tasks",
    task,
    "--data",
    data,
    "--backend",
    "wasm",
    "--json",
  ];
  const args = [
    ...base,
    ...(shots === undefined ? [] : ["--shots", String(shots)]),
    ...(limit === undefined ? [] : ["--limit", String(limit)]),
    ...(chat ? ["--chat"] : []),
  ];
  const code = await runCli(args, terminal);
  expect(code, terminal.complained.join("\n")).toBe(0);
  return JSON.parse(terminal.said.join("\n")) as MetricsRun;
}

/** `acc/stem` of mmlu stands in results as `mmlu_stem/acc,none`, `exact_match,strict-match` with its own filter. */
function asInResults(task: string, metrics: Readonly<Record<string, MetricValue>>) {
  const entries = Object.entries(metrics).map(([name, { value, stderr, n, ci95 }]) => {
    const [own, group] = name.split("/");
    const key = `${task}${group === undefined ? "" : `_${group}`}/${own!.includes(",") ? own : `${own},none`}`;
    return [key, { value, stderr, n, ci95 }] as const;
  });
  return Object.fromEntries(entries);
}

const numbersOf = ({ metrics, stderr, n, ci95 }: MetricsRun) =>
  Object.fromEntries(
    Object.entries(metrics).map(([key, value]) => [
      key,
      { value, stderr: stderr[key], n: n[key], ci95: ci95[key] },
    ]),
  );

const live = new Map<string, MetricsRun>();

it("are measured on the live weights of a trainer, and by callbacks at the start of its training", async () => {
  for (const task of names)
    live.set(task, (await Evaluator.fromTrainer(trainer, evaluatorOptions(task, "live")).run()).run);
  for (const task of names)
    trainer.addCallback(
      new PeriodicCallback(tasks[task]!.open(options(task)), { schedule: [atStart()], atEnd: false }),
    );
  await trainer.train();
  const { phases, problems } = await readRun(join(folder, "run"));
  expect(problems).toEqual([]);
  for (const { id, step, status, metrics, receipt } of phases[0]!.snapshots) {
    const broken = receipt.filter(({ intact }) => intact === false).map(({ part }) => part);
    expect([id, step, status, broken]).toEqual([id, 0, "complete", []]);
    inLoop.set(id, metrics);
  }
  // Another machine has its files elsewhere.
  expect(JSON.stringify(phases[0]!.snapshots)).not.toContain(folder);
  expect([...inLoop.keys()].toSorted()).toEqual(names.toSorted());
});

it.each(names)(
  "%s has the same numbers in the loop, of a trainer, of a checkpoint and on the command line",
  async (task) => {
    const looked = asInResults(task, inLoop.get(task)!);
    expect(Object.values(looked).every(({ n }) => n > 0)).toBe(true);
    expect(Object.values(looked).some(({ value }) => value !== 0)).toBe(true);
    expect(numbersOf(live.get(task)!)).toEqual(looked);
    const openModel = checkpointOpener("wasm", keptTerminal());
    const saved = await Evaluator.fromCheckpoint(checkpoint, {
      ...evaluatorOptions(task, "saved"),
      openModel,
    }).run();
    expect(numbersOf(saved.run)).toEqual(looked);
    expect(numbersOf(await onCommandLine(task))).toEqual(looked);
  },
);
