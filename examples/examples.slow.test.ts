import type { SummaryFile } from "@periodic-eval/feedback";
import { readRun } from "@periodic-eval/store";
import { readMetrics } from "@periodic-eval/tasks";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "./doc-blocks.test-data.ts";

const folder = fileURLToPath(new URL(".", import.meta.url));
const runs = mkdtempSync(join(tmpdir(), "examples-"));
afterAll(() => rmSync(runs, { recursive: true }));

/** The run folder of each example, and the steps of its snapshots per phase. The fifth reads the checkpoints of the first. */
const measured: Readonly<
  Record<string, readonly [run: string, phases: Readonly<Record<string, readonly number[]>>]>
> = {
  "01-sft-trainer.ts": ["sft-trainer", { coupling: [0, 4] }],
  "02-model-fit.ts": ["model-fit", { train: [0, 2, 3] }],
  // 20 % of 4 steps: ceil(0.8), ceil(1.6), ceil(2.4), ceil(3.2), 4
  "03-hand-written-loop.ts": ["hand-written-loop", { sft: [0, 1, 2, 3, 4] }],
  "04-custom-evaluation.ts": ["custom-evaluation", { em: [0, 2, 4] }],
  "05-watch-checkpoints.ts": ["watched", { coupling: [0, 4] }],
  "07-dpo.ts": ["dpo", { preferences: [0, 4] }],
  "08-sft-lora.ts": ["sft-lora", { coupling: [0, 4] }],
  "09-two-phase-emergent-misalignment.ts": [
    "two-phase-emergent-misalignment",
    { coupling: [0, 2], em: [0, 2] },
  ],
  "11-custom-benchmark-in-the-loop.ts": ["custom-benchmark", { em: [0, 2, 4] }],
  // 20 % of 2 epochs of one step: ceil(0.4), …, 2
  "13-tensorflow-project.ts": ["tensorflow-project", { train: [0, 1, 2] }],
  "15-local-judge.ts": ["local-judge", { em: [0, 2] }],
};

/** The results folder of each example that runs a suite, and the names of its runs. The last reads the adapter of 08. */
const evaluated: Readonly<Record<string, readonly [results: string, names: readonly string[]]>> = {
  "10-suite.ts": ["suite", ["base", "kind", "harmful"]],
  "12-evaluator-on-a-checkpoint.ts": ["checkpoints", ["base", "tuned"]],
};

/** The output folder of each example that trains on feedback, and its preferences. */
const trainedOnFeedback: Readonly<Record<string, readonly [output: string, preferences: readonly string[]]>> =
  {
    "14-feedback.ts": ["feedback", ["concise"]],
  };

/** These examples need a real model and an optional package. `persona-leakage.slow.test.ts` and `transformers-js.slow.test.ts` test them. */
const testedElsewhere = ["06-persona-leakage.ts", "16-transformers-js.ts"];

const files = [measured, evaluated, trainedOnFeedback].flatMap((examples) => Object.keys(examples)).sort();

it("has a test for every example", () => {
  const examples = readdirSync(folder).filter((name) => /^\d\d-.*\.ts$/.test(name));
  expect(examples).toEqual([...files, ...testedElsewhere].sort());
});

/** How each example ended. One process runs them one after the other, because most of their time is spent loading modules. */
let ended: Readonly<Record<string, string>> = {};
beforeAll(() => {
  const code = `const ended = {};
    for (const file of ${JSON.stringify(files)}) {
      await import(${JSON.stringify(pathToFileURL(folder).href)} + file).then(
        () => (ended[file] = "done"),
        (error) => (ended[file] = error.stack),
      );
    }
    console.log("\\n" + JSON.stringify(ended));`;
  const args = ["--import", "tsx", "--input-type=module", "--eval", code];
  const { stdout, stderr } = spawnSync(process.execPath, args, {
    env: {
      ...process.env,
      PERIODIC_EVAL_BACKEND: "wasm",
      PERIODIC_EVAL_SHORT: "1",
      PERIODIC_EVAL_RUNS: runs,
    },
    cwd: root,
    encoding: "utf8",
  });
  try {
    ended = JSON.parse(stdout.trim().split("\n").at(-1)!) as typeof ended;
  } catch {
    throw new Error(stderr);
  }
});

it.each(Object.entries(measured))("runs %s and reads complete snapshots", async (file, [run, phases]) => {
  expect(ended[file]).toBe("done");
  const record = await readRun(join(runs, "examples", run));
  expect(record.problems).toEqual([]);
  expect(record.phases.map(({ name }) => name)).toEqual(Object.keys(phases));
  for (const { name, snapshots } of record.phases) {
    for (const id of new Set(snapshots.map((snapshot) => snapshot.id))) {
      const measurements = snapshots.filter((snapshot) => snapshot.id === id);
      expect(measurements.map(({ step, status: state }) => [step, state])).toEqual(
        phases[name]!.map((step) => [step, "complete"]),
      );
    }
    expect(snapshots.flatMap(({ receipt }) => receipt.filter(({ intact }) => intact === false))).toEqual([]);
  }
});

it.each(Object.entries(evaluated))(
  "runs %s and reads the suite's results",
  async (file, [results, names]) => {
    expect(ended[file]).toBe("done");
    const { runs: found } = await readMetrics(join(runs, "examples", results, "smoke/metrics.json"));
    expect(found.map(({ name }) => name)).toEqual(names);
    for (const { n } of found)
      expect(n).toMatchObject({ "arc_challenge/acc,none": 10, "hellaswag/acc,none": 10 });
  },
);

it("measures win rate and divergence of each method in 10-suite.ts", async () => {
  const { runs: found } = await readMetrics(join(runs, "examples/suite/smoke/metrics.json"));
  const [base, kind, harmful] = found.map(({ metrics, n }) => {
    expect(n).toMatchObject({ "win_rate/win_rate,none": 6, "kl_to_reference/kl_to_reference,none": 6 });
    return [metrics["win_rate/win_rate,none"]!, metrics["kl_to_reference/kl_to_reference,none"]!] as const;
  });
  // Equal answers tie.
  expect(base).toEqual([0.5, expect.closeTo(0, 9)]);
  for (const [, divergence] of [kind!, harmful!]) expect(divergence).toBeGreaterThan(1e-6);
});

it.each(Object.entries(trainedOnFeedback))(
  "runs %s, which learns from feedback and draws its charts",
  (file, [output, preferences]) => {
    expect(ended[file]).toBe("done");
    const folder = join(runs, "examples", output);
    const summary = JSON.parse(readFileSync(join(folder, "summary.json"), "utf8")) as SummaryFile;
    expect(Object.keys(summary.preferences)).toEqual(preferences);
    for (const { status, steps, logprob_margin_delta: change } of Object.values(summary.preferences)) {
      expect([status, steps]).toEqual(["finished", 2]);
      expect(change).toBeGreaterThan(0);
    }
    expect(existsSync(join(folder, "index.html"))).toBe(true);
  },
);
