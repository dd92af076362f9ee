import { atStart, PeriodicCallback, type MetricValue } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { loadCausalLM, useBackend, type CheckpointLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { Evaluator, tasks, type MetricsRun } from "@periodic-eval/tasks";
import { SFTTrainer } from "@periodic-eval/trainers";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { mmluGroups } from "../../../../tasks/src/tasks/datasets.ts";
import { linesOf, writeSmallRows } from "../../../../tasks/src/tasks/small-rows.test-data.ts";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { checkpointOpener } from "../../config/open-model.ts";
import { runCli } from "../../program.ts";

/** Settings per task: few documents, some with few-shot examples. Generating tasks use a chat, in which the embedded model stops. */
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
/** Start measurements of a short training with the tasks as callbacks, by task. */
const inLoop = new Map<string, Readonly<Record<string, MetricValue>>>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "every-task-"));
  data = join(folder, "data");
  await mkdir(join(data, "ifeval"), { recursive: true });
  await writeFile(join(data, "ifeval", "input_data.jsonl"), linesOf(ifevalRows));
  await writeSmallRows(data, Object.values(mmluGroups).flat());
  // The embedded model with a longer context than it was trained with, because IFEval generates up to 1,280 tokens.
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
    loggers: [],
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
  const { data: input, chat = null, ...settings } = options(task);
  return {
    name,
    tasks,
    suite: { schema_version: 1 as const, name: "one", tasks: { [task]: { ...settings, chat, data: input } } },
    results: join(folder, "results", task),
  };
};

/** Returns the JSON that the command line prints for a task. */
async function onCommandLine(task: string): Promise<MetricsRun> {
  const { shots, limit, chat = false } = asked[task]!;
  const terminal = recordingTerminal();
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
  expect(code, terminal.errors.join("\n")).toBe(0);
  return JSON.parse(terminal.outputs.join("\n")) as MetricsRun;
}

/** Renames snapshot metrics to keys of results: `acc/stem` of mmlu is `mmlu_stem/acc,none`; `exact_match,strict-match` keeps its filter. */
function asInResults(task: string, metrics: Readonly<Record<string, MetricValue>>) {
  const entries = Object.entries(metrics).map(([name, { value, stderr, n, ci95 }]) => {
    const [metric, group] = name.split("/");
    const key = `${task}${group === undefined ? "" : `_${group}`}/${metric!.includes(",") ? metric : `${metric},none`}`;
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

it("measures tasks on a trainer's live weights and in callbacks at the start of training", async () => {
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
  // Snapshots must not contain paths of this machine.
  expect(JSON.stringify(phases[0]!.snapshots)).not.toContain(folder);
  expect([...inLoop.keys()].toSorted()).toEqual(names.toSorted());
});

it.each(names)(
  "%s has the same numbers in a callback, from a trainer, from a checkpoint and on the command line",
  async (task) => {
    const expected = asInResults(task, inLoop.get(task)!);
    expect(Object.values(expected).every(({ n }) => n > 0)).toBe(true);
    expect(Object.values(expected).some(({ value }) => value !== 0)).toBe(true);
    expect(numbersOf(live.get(task)!)).toEqual(expected);
    const openModel = checkpointOpener(recordingTerminal());
    const [evaluator, config] = Evaluator.fromCheckpoint(checkpoint, {
      ...evaluatorOptions(task, "saved"),
      openModel,
    });
    expect(config.model).toMatchObject({ model_type: expect.any(String) });
    const saved = await evaluator.run();
    expect(numbersOf(saved.run)).toEqual(expected);
    expect(numbersOf(await onCommandLine(task))).toEqual(expected);
  },
);
