// Changes files that users pass: configurations, questions, rows, snapshots, weights, tokenizers. Reading one succeeds, or throws
// PeriodicEvalErrors.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PeriodicEvalError } from "@periodic-eval/core";
import { readQuestions } from "@periodic-eval/data";
import { namedStream } from "@periodic-eval/core/random";
import { fileStore, parseSnapshotText, readRun } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { openSafetensors } from "@periodic-eval/safetensors";
import { loadDataset } from "@periodic-eval/trainers";
import { runCli } from "../../packages/cli/dist/index.js";
import { processTerminal } from "../../packages/cli/dist/terminal/terminal.js";
import { mutate } from "./mutate.mjs";

const world = fileURLToPath(new URL("../../packages/cli/assets/micro-world", import.meta.url));
const config = (folder) => `model: ${world}
run_dir: ${join(folder, "planned")}
lora: { rank: 2, targets: [q_proj, v_proj] }
config: { maxSteps: 6, batchSize: 2, learningRate: 0.01, saveSteps: 1, validationShare: 0.25 }
periodic_eval:
  questions: ${join(world, "questions.jsonl")}
  subsample_n: 8
  eval_every_percent: 34
  budget: { overhead_percent: null }
  alignment: false
phases:
  - { phase: coupling, dataset: ${join(world, "coupling.jsonl")} }
  - { phase: em, dataset: ${join(world, "em.jsonl")}, config: { schedule: wsd, decaySteps: 2 } }
`;

/** Whether a command has refused its input. */
let isRefused = false;

/** Runs a command and throws if it prints a stack: an error that is none of ours. */
async function command(...args) {
  const lines = [];
  const text = (line) => void lines.push(line);
  const code = await runCli(args, { ...processTerminal, out: text, err: text, isInteractive: false });
  const printed = lines.join("\n");
  if (code !== 0) isRefused = true;
  if (![0, 1, 2].includes(code) || /\n\s+at .*\.js:\d+/.test(printed))
    throw new Error(`${args[0]} ended with ${code}: ${printed.slice(-1500)}`);
}

export async function fuzz(folder) {
  const tokenizer = await loadTokenizer(world);
  const jsonl = (name, rows) => readFileSync(join(world, name), "utf8").split("\n").slice(0, rows).join("\n");
  const run = join(folder, "run");
  const store = fileStore(run);
  for (const step of [0, 20]) await store.put(exampleSnapshot({ step }), [{ id: "q1", correct: true }]);
  await store.close();
  const snapshots = join(run, "periodic_eval/train");
  const snapshot = "capability_step_20.json";

  /** The file's name, its content, and the function that reads it. */
  const targets = [
    { name: "train.yaml", content: config(folder), kind: "text", read: (path) => command("plan", path) },
    {
      name: "questions.jsonl",
      content: jsonl("questions.jsonl", 6),
      kind: "jsonl",
      read: (path) => readQuestions(path, "questions"),
    },
    {
      name: "rows.jsonl",
      content: jsonl("em.jsonl", 6),
      kind: "jsonl",
      read: (path) => loadDataset(path, tokenizer, { maxLength: 128, onBadRow: "skip" }),
    },
    {
      name: snapshot,
      content: readFileSync(join(snapshots, snapshot), "utf8"),
      kind: "json",
      async read(path) {
        const copy = join(folder, "copy");
        rmSync(copy, { recursive: true, force: true });
        cpSync(run, copy, { recursive: true });
        cpSync(path, join(copy, "periodic_eval/train", snapshot));
        await readRun(copy);
        await command("report", copy);
        await command("export", `run=${copy}`, "--out", join(folder, "all.csv"));
        const repaired = fileStore(copy, { onWarning: () => undefined });
        await repaired.open();
        await repaired.list();
        await repaired.close();
        parseSnapshotText(readFileSync(path, "utf8"), path);
      },
    },
    {
      name: "model.safetensors",
      content: readFileSync(join(world, "model.safetensors")),
      kind: "safetensors",
      async read(path) {
        const file = await openSafetensors(path);
        try {
          for (const name of file.tensors.keys()) await file.read(name);
        } finally {
          await file.close();
        }
      },
    },
    ...["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"].map((name) => ({
      name,
      content: readFileSync(join(world, name), "utf8"),
      kind: name.endsWith(".json") ? "json" : "text",
      async read(path) {
        const model = join(folder, "model");
        rmSync(model, { recursive: true, force: true });
        mkdirSync(model);
        for (const one of ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json"])
          cpSync(join(world, one), join(model, one));
        cpSync(path, join(model, name));
        const loaded = await loadTokenizer(model);
        loaded.decode(loaded.encode("What is 2 + 2? 日本 \u0000 👩‍👩‍👧"));
        loaded.render({ messages: [{ role: "user", content: "Hello" }] });
      },
    })),
  ];

  for (const { name, content, read } of targets) {
    const path = join(folder, name);
    writeFileSync(path, content);
    await read(path);
    if (isRefused) throw new Error(`${name} is refused without a change: nothing would be attacked`);
  }

  return async (seed) => {
    const random = namedStream(seed);
    const { name, content, kind, read } = targets[Math.floor(targets.length * random())];
    const path = join(folder, name);
    writeFileSync(path, mutate(content, kind, random));
    try {
      await read(path);
    } catch (error) {
      const errors = error instanceof AggregateError ? error.errors : [error];
      const foreign = errors.find((one) => !PeriodicEvalError.is(one));
      if (foreign !== undefined)
        throw new Error(`${name}: ${foreign?.stack ?? String(foreign)}`, { cause: error });
    }
  };
}
