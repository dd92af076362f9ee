// Changes files that users pass: configurations, questions, rows, snapshots, weights, tokenizers. Reading one succeeds or throws errors
// of ours, and commands print no stack.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/core";
import { readQuestions } from "@periodic-eval/data";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { openSafetensors } from "@periodic-eval/safetensors";
import { fileStore, readRun } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { loadDataset } from "@periodic-eval/trainers";
import { attack, attackTimeout } from "../../../testing/src/attack.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { microWorld } from "../demo/micro-world.ts";
import { runCommand } from "../run-command.test-data.ts";
import { changedFile } from "./changed-file.test-data.ts";

const world = (name = "") => microWorld(name);
const textOf = (name: string, lines?: number) =>
  readFileSync(world(name), "utf8").split("\n").slice(0, lines).join("\n");
const training = (folder: string) => `model: ${world()}
run_dir: ${join(folder, "planned")}
lora: { rank: 2, targets: [q_proj, v_proj] }
config: { maxSteps: 6, batchSize: 2, learningRate: 0.01, saveSteps: 1, validationShare: 0.25 }
periodic_eval:
  questions: ${world("questions.jsonl")}
  subsample_n: 8
  eval_every_percent: 34
  budget: { overhead_percent: null }
  alignment: false
phases:
  - { phase: coupling, dataset: ${world("coupling.jsonl")} }
  - { phase: em, dataset: ${world("em.jsonl")}, config: { schedule: wsd, decaySteps: 2 } }
`;

/** Runs a command. Returns whether it accepted its input. */
async function command(...args: string[]): Promise<boolean> {
  const { code, out, err } = await runCommand(args);
  expect([0, 1, 2], err).toContain(code);
  // A stack belongs to an error that is none of ours.
  expect(`${out}\n${err}`).not.toMatch(/\n\s+at .*[jt]s:\d+/);
  return code === 0;
}

/** Returns the files by name: their content, and the function that reads one and may return false to refuse it. */
async function filesIn(folder: string) {
  const tokenizer = await loadTokenizer(world());
  const run = join(folder, "run");
  const snapshot = "capability_step_20.json";
  const store = fileStore(run);
  const rows = [{ id: "q1", correct: true }];
  for (const step of [0, 20]) await store.put(exampleSnapshot({ step }), rows);
  await store.close!();
  const parts = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json"];
  const asTokenizer = async (path: string, name: string) => {
    const model = join(folder, "model");
    mkdirSync(model, { recursive: true });
    for (const part of parts) cpSync(world(part), join(model, part));
    cpSync(path, join(model, name));
    const loaded = await loadTokenizer(model);
    loaded.decode(loaded.encode("What is 2 + 2? 日本 \u0000 👩‍👩‍👧"));
    loaded.render({ messages: [{ role: "user", content: "Hello" }] });
  };
  const files: Record<
    string,
    [content: string | Buffer, read: (path: string, name: string) => Promise<unknown>]
  > = {
    "train.yaml": [training(folder), (path) => command("plan", path)],
    "questions.jsonl": [textOf("questions.jsonl", 6), (path) => readQuestions(path, "questions")],
    "rows.jsonl": [
      textOf("em.jsonl", 6),
      async (path) => loadDataset(path, tokenizer, { maxLength: 128, onBadRow: "drop" }),
    ],
    [snapshot]: [
      readFileSync(join(run, "periodic_eval/train", snapshot)),
      async (path) => {
        const copy = join(folder, "copy");
        rmSync(copy, { recursive: true, force: true });
        cpSync(run, copy, { recursive: true });
        cpSync(path, join(copy, "periodic_eval/train", snapshot));
        await readRun(copy);
        const accepted = [await command("report", copy), await command("compare", `run=${copy}`, "--csv")];
        const repaired = fileStore(copy, { onWarning: () => undefined });
        await repaired.open!();
        await repaired.list();
        await repaired.close!();
        return !accepted.includes(false);
      },
    ],
    "model.safetensors": [
      readFileSync(world("model.safetensors")),
      async (path) => {
        const file = await openSafetensors(path);
        try {
          for (const name of file.tensors.keys()) await file.read(name);
        } finally {
          await file.close();
        }
      },
    ],
  };
  for (const name of parts.slice(0, 3)) files[name] = [readFileSync(world(name)), asTokenizer];
  return files;
}

it("are read, or refused with an error of ours", { timeout: attackTimeout }, async () => {
  const folder = temporaryFolder();
  const files = await filesIn(folder);
  const read = (name: string, content: string | Buffer) => {
    writeFileSync(join(folder, name), content);
    return files[name]![1](join(folder, name), name);
  };
  for (const [name, [content]] of Object.entries(files))
    expect(await read(name, content), name).not.toBe(false);
  const cases = fc.record({ name: fc.constantFrom(...Object.keys(files)), draw: fc.gen() });
  await attack(120, cases, async ({ name, draw }) => {
    try {
      await read(name, changedFile(name, Buffer.from(files[name]![0]), draw));
    } catch (error) {
      const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
      for (const each of errors) if (!PeriodicEvalError.is(each)) throw error;
    }
  });
});
