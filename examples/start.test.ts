import { readRun } from "@periodic-eval/core/snapshots";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { blocksOf, root, runCode, runCommands, withReplacements } from "./doc-blocks.test-data.ts";
import { microWorld } from "./micro-world/paths.ts";

/** A project in which the packages are installed. */
let project = "";
beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), "start-"));
  symlinkSync(join(root, "node_modules"), join(project, "node_modules"), "junction");
});
afterAll(() => rmSync(project, { recursive: true }));

it("runs the files and commands of docs/start.md, with fewer steps and questions", async () => {
  const document = "docs/start.md";
  const [train, suite] = blocksOf(document, "yaml");
  writeFileSync(join(project, "train.yaml"), train!);
  writeFileSync(join(project, "suite.yaml"), withReplacements(suite!, { "limit: 100": "limit: 5" }));
  const commands = blocksOf(document, "sh")
    .flatMap((block) => block.split("\n").map((line) => line.trim()))
    .filter((line) => line.startsWith("npx") && !line.includes("path/to"));
  const fewer: Readonly<Record<string, string>> = {
    train: " config.maxSteps=2 periodic_eval.subsample_n=5",
    "eval --questions": " --limit 10",
  };
  const lines = commands.map((line) => {
    const [, , name] = line.split(" ");
    const key = line.includes("--questions") ? `${name} --questions` : name!;
    return `${line}${fewer[key] ?? ""}`;
  });
  const printed = await runCommands(lines, project);
  expect(commands).toHaveLength(7);
  const [, page, , table, capability, , again] = printed.map((text) => text.trim());
  for (const [text, path] of [
    [page, "runs/yaml/periodic_eval/index.html"],
    [table, "results/index.html"],
    [again, "results/index.html"],
  ] as const) {
    expect(text!.split("\n").at(-1)).toMatch(path);
    expect(existsSync(join(project, path))).toBe(true);
  }
  expect(capability).toMatch(/^letters .* 10 /m);
  const { phases } = await readRun(join(project, "runs/yaml"));
  expect(phases.map(({ name, snapshots }) => [name, ...snapshots.map(({ step }) => step)])).toEqual([
    ["em", 0, 1, 2],
  ]);
});

it("runs the blocks of docs/training.md for model.fit and for checkpoints, on small models", async () => {
  const blocks = blocksOf("docs/training.md", "ts");
  const [fit, watch] = ["fitCallbacks(", "watchCheckpoints("].map((part) =>
    blocks.find((block) => block.includes(part))!,
  );
  const questions = join(project, "questions.jsonl");
  writeFileSync(
    questions,
    readFileSync(microWorld("questions.jsonl"), "utf8").split("\n").slice(0, 2).join("\n"),
  );
  const model = `
    await tf.setBackend("cpu");
    const characters = new Set(${JSON.stringify(readFileSync(questions, "utf8"))} + "Question: Answer:\\n");
    const units = characters.size;
    const model = tf.sequential({ layers: [
      tf.layers.embedding({ inputDim: units, outputDim: 4, inputShape: [null as unknown as number] }),
      tf.layers.dense({ units, activation: "softmax" }),
    ] });
    model.compile({ optimizer: "sgd", loss: "sparseCategoricalCrossentropy" });
    const x = tf.ones([2, 3], "int32");
    const y = tf.ones([2, 3, 1]);\n`;
  const shared = { '"arc_challenge/test.jsonl"': JSON.stringify(questions) };
  const checkpoint = join(project, "checkpoints/checkpoint-2");
  cpSync(microWorld(), checkpoint, { recursive: true });
  writeFileSync(join(checkpoint, "trainer_state.json"), JSON.stringify({ global_step: 2, max_steps: 2 }));
  const modules = {
    fit: model + withReplacements(fit!, shared),
    watch: withReplacements(watch!, {
      ...shared,
      '"path/to/model"': JSON.stringify(microWorld()),
      "path/to/checkpoints": join(project, "checkpoints"),
    }),
  };
  mkdirSync(join(root, ".build"), { recursive: true });
  const files = Object.entries(modules).map(([name, code]) => {
    writeFileSync(join(root, ".build", `start-${name}.ts`), code);
    return `await import("./start-${name}.ts");`;
  });
  await runCode("start", files.join("\n"), { PERIODIC_EVAL_BACKEND: "wasm" }, project);
  const stepsOf = async (run: string) =>
    (await readRun(join(project, "runs", run))).phases[0]!.snapshots.map(({ step, status }) => [
      step,
      status,
    ]);
  // One batch per epoch and five epochs; 20 % each. The loss falls, so early stopping does not end training.
  expect(await stepsOf("fit")).toEqual([0, 1, 2, 3, 4, 5].map((step) => [step, "complete"]));
  expect(await stepsOf("watch")).toEqual([0, 2].map((step) => [step, "complete"]));
});
