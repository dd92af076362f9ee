import { readRun } from "@periodic-eval/core/snapshots";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";

const folder = fileURLToPath(new URL(".", import.meta.url));
const runs = mkdtempSync(join(tmpdir(), "examples-"));
afterAll(() => rmSync(runs, { recursive: true }));

/** The run folder of each example, and the steps of its snapshots per phase. The fifth reads the checkpoints of the first. */
const expected: Readonly<
  Record<string, readonly [run: string, phases: Readonly<Record<string, readonly number[]>>]>
> = {
  "01-sft-trainer.ts": ["sft-trainer", { coupling: [0, 4] }],
  "02-model-fit.ts": ["model-fit", { train: [0, 2, 3] }],
  // 20 % of 4 steps: ceil(0.8), ceil(1.6), ceil(2.4), ceil(3.2), 4
  "03-hand-written-loop.ts": ["hand-written-loop", { sft: [0, 1, 2, 3, 4] }],
  "04-custom-evaluation.ts": ["custom-evaluation", { em: [0, 2, 4] }],
  "05-watch-checkpoints.ts": ["watched", { coupling: [4] }],
  "07-dpo.ts": ["dpo", { preferences: [0, 4] }],
  "08-sft-lora.ts": ["sft-lora", { coupling: [0, 4] }],
  "09-two-phase-emergent-misalignment.ts": [
    "two-phase-emergent-misalignment",
    { coupling: [0, 2], em: [0, 2] },
  ],
};

/** This example needs a real model. `persona-leakage.test.ts` tests it. */
const testedElsewhere = ["06-persona-leakage.ts"];

it("has a test for every example", () => {
  const examples = readdirSync(folder).filter((name) => /^\d\d-.*\.ts$/.test(name));
  expect(examples).toEqual([...Object.keys(expected), ...testedElsewhere].sort());
});

it.each(Object.entries(expected))("runs %s and reads complete snapshots", async (file, [run, phases]) => {
  const { status, stderr } = spawnSync(process.execPath, ["--import", "tsx", join(folder, file)], {
    env: {
      ...process.env,
      PERIODIC_EVAL_BACKEND: "wasm",
      PERIODIC_EVAL_SHORT: "1",
      PERIODIC_EVAL_RUNS: runs,
    },
    encoding: "utf8",
  });
  expect(status, stderr).toBe(0);
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
