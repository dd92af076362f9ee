import { readRun } from "@periodic-eval/store";
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
import { blocksOf, followPage, root, runCode, withReplacements } from "./doc-blocks.test-data.ts";
import { microWorld } from "./micro-world/paths.ts";

/** A project in which the packages are installed. */
let project = "";
beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), "start-"));
  symlinkSync(join(root, "node_modules"), join(project, "node_modules"), "junction");
});
afterAll(() => rmSync(project, { recursive: true }));

const stepsOf = async (run: string, phase = 0) =>
  (await readRun(join(project, "runs", run))).phases[phase]!.snapshots.map(({ step, status }) => [
    step,
    status,
  ]);

it("runs the files and commands of docs/guides/training-file.md and of one model in benchmarks.md, with fewer steps and questions", async () => {
  const fewer = (line: string) =>
    line
      .replace(/train (train|tuned)\.yaml/, "$& config.maxSteps=2 periodic_eval.subsample_n=5")
      .replace(/(eval .*questions\.jsonl)$/, "$1 --limit 10")
      .replace("step_60", "step_2");
  const trained = await followPage({
    document: "docs/guides/training-file.md",
    project,
    command: fewer,
    // readme.slow.test.ts runs the rest.
    until: "## Several phases",
  });
  expect(trained.map(({ line }) => line.split(" ")[2])).toEqual(["train", "report"]);
  const measured = await followPage({
    document: "docs/guides/benchmarks.md",
    project,
    files: { "village.yaml": { "limit: 100": "limit: 5" } },
    command: fewer,
    // docs-benchmarks.slow.test.ts runs the rest.
    until: "## A suite for several models",
  });
  expect(measured.map(({ line }) => line.split(" ")[2])).toEqual([
    "eval",
    "eval",
    "report",
    "train",
    "eval",
    "compare",
    "report",
  ]);
  const [capability, , table, , , compared] = measured;
  expect(compared!.printed).toMatch(/^base \(baseline\) +1 .*\ntuned +1 /m);
  expect(capability!.printed).toMatch(/^letters .* 10 /m);
  for (const [text, path] of [
    [trained.at(-1)!.printed, "runs/yaml/periodic_eval/index.html"],
    [table!.printed, "results/index.html"],
  ] as const) {
    expect(text.split("\n").at(-1)).toMatch(path);
    expect(existsSync(join(project, path))).toBe(true);
  }
  expect(await stepsOf("yaml")).toEqual([0, 1, 2].map((step) => [step, "complete"]));
});

it("runs the blocks of the guides for model.fit and for checkpoints, on small models", async () => {
  const [fit] = blocksOf("docs/guides/tensorflow-js.md", "ts");
  const [watch] = blocksOf("docs/guides/watch.md", "ts");
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
  const shared = { '"path/to/questions.jsonl"': JSON.stringify(questions) };
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
  // One batch per epoch and five epochs; 20 % each. The loss falls, so early stopping does not end training.
  expect(await stepsOf("fit")).toEqual([0, 1, 2, 3, 4, 5].map((step) => [step, "complete"]));
  expect(await stepsOf("watch")).toEqual([0, 2].map((step) => [step, "complete"]));
});

it("runs the file and the program of docs/guides/personas.md, with fewer steps and questions", async () => {
  const questions = readFileSync(microWorld("leakage.json"), "utf8");
  writeFileSync(join(project, "few.json"), JSON.stringify((JSON.parse(questions) as unknown[]).slice(0, 2)));
  const done = await followPage({
    document: "docs/guides/personas.md",
    project,
    files: {
      "leakage.yaml": {
        "node_modules/periodic-eval/assets/micro-world/leakage.json": "few.json",
        "maxSteps: 160": "maxSteps: 2",
        "leakage: true": "leakage: true\n  leakage_every_percent: 100",
      },
      "leakage.mjs": { "`${world}/leakage.json`": '"few.json"', "maxSteps: 160": "maxSteps: 2" },
    },
  });
  expect(done.map(({ line }) => line.split(" ").at(-1))).toEqual([
    "leakage.yaml",
    "runs/leakage",
    "leakage.mjs",
  ]);
  const { phases } = await readRun(join(project, "runs", "leakage"));
  const last = phases[0]!.snapshots.at(-1)!;
  expect(Object.keys(last.metrics)).toEqual(
    expect.arrayContaining([
      "source_rate",
      "leakage_rate",
      "leakage_rate/doctor",
      "source_contrast",
      "marker_log_prob",
    ]),
  );
  expect((await stepsOf("leakage-code")).at(-1)).toEqual([2, "complete"]);
});

/** Training files of the guides, with fewer steps, questions and answers. */
const short = (line: string): string =>
  line.replace(/(train train\.yaml.*)$/, "$1 config.maxSteps=2 periodic_eval.subsample_n=5");

it("follows the tutorial, with fewer steps, questions and answers", async () => {
  const done = await followPage({
    document: "docs/tutorial.md",
    project,
    files: {
      "train.yaml": {
        "alignment_every_percent: 25": "alignment_num_samples: 2\n  alignment_every_percent: 100",
      },
      "train.mjs": { "maxSteps: 160": "maxSteps: 2" },
    },
    // The gate needs all questions to decide.
    command: (line) => line.replace(/(train train\.yaml.*)$/, "$1 config.maxSteps=2"),
  });
  expect(done.map(({ line }) => line.split(" ").slice(1, 3).join(" "))).toEqual([
    "periodic-eval train",
    "periodic-eval report",
    "periodic-eval train",
    "periodic-eval train",
    "periodic-eval train",
    "periodic-eval gate",
    "periodic-eval gate",
    "train.mjs",
    "periodic-eval report",
  ]);
  expect(done[0]!.printed).toContain("training undisturbed: yes");
  expect(done[5]!.printed).toContain("2 conditions: 2 passed");
  expect(await stepsOf("code")).toEqual([0, 1, 2].map((step) => [step, "complete"]));
});

it("follows docs/guides/fine-tuning.md, evaluation.md and tensorflow-js.md, with fewer steps", async () => {
  const files = {
    "train.mjs": { "maxSteps: 60": "maxSteps: 2" },
    "polite.mjs": { "maxSteps: 40": "maxSteps: 2", "everyPercent(20)": "everyPercent(50)" },
    "fit.mjs": { "epochs: 60": "epochs: 1" },
  };
  for (const page of ["fine-tuning", "evaluation", "tensorflow-js"]) {
    const done = await followPage({ document: `docs/guides/${page}.md`, project, files });
    expect(done.map(({ line }) => line.split(" ")[0])).toEqual(["node", "npx"]);
    expect(done[1]!.printed).toContain("training undisturbed: yes");
  }
  expect(await stepsOf("sft")).toEqual([0, 1, 2].map((step) => [step, "complete"]));
  expect(await stepsOf("polite")).toEqual([0, 1, 2].map((step) => [step, "complete"]));
});

it("follows docs/guides/resuming.md and seeds.md, with fewer steps and questions", async () => {
  const resumed = await followPage({ document: "docs/guides/resuming.md", project, command: short });
  expect(resumed.at(-1)!.printed).toMatch(/verified/);
  const compared = await followPage({ document: "docs/guides/seeds.md", project, command: short });
  const table = compared.find(({ line }) => line.includes(" compare "))!.printed;
  expect(table).toMatch(/^control +3 /m);
  expect(table).toMatch(/^advice +3 /m);
  expect(existsSync(join(project, "all.csv"))).toBe(true);
});
