// Runs the sixth example on SmolLM2-135M-Instruct with fewer questions, which takes a few minutes.
import { readRun } from "@periodic-eval/store";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasBackend } from "../packages/models/src/backend/installed-backends.ts";
import { sharedData, smollm2 } from "./micro-world/paths.ts";

const files = [
  smollm2,
  sharedData("personas/partial_contrastive_wrong.jsonl"),
  sharedData("arc_challenge/test.jsonl"),
];
const isAvailable = files.every((path) => existsSync(path)) && hasBackend("@tensorflow/tfjs-node");

let runs = "";
beforeAll(() => void (runs = mkdtempSync(join(tmpdir(), "persona-leakage-"))));
afterAll(() => rmSync(runs, { recursive: true, force: true }));

/** Runs the example, checks its snapshots, and returns the number that it prints after `words`. */
async function run(): Promise<(words: string) => number> {
  const example = fileURLToPath(new URL("06-persona-leakage.ts", import.meta.url));
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--import", "tsx", "-C", "@periodic-eval/source", example],
    {
      env: { ...process.env, PERIODIC_EVAL_SHORT: "1", PERIODIC_EVAL_RUNS: runs },
      encoding: "utf8",
    },
  );
  expect(status, stderr).toBe(0);
  const { phases, problems } = await readRun(join(runs, "examples", "persona-leakage"));
  expect(problems).toEqual([]);
  const { snapshots } = phases[0]!;
  const measurements = snapshots.map(({ id, step, status: state }) => `${id} ${step} ${state}`);
  const steps = Math.max(...snapshots.map(({ step }) => step));
  expect(measurements.toSorted()).toEqual(
    ["alignment", "capability", "leakage"].flatMap((id) =>
      [0, steps].map((step) => `${id} ${step} complete`),
    ),
  );
  expect(snapshots.flatMap(({ receipt }) => receipt).filter(({ intact }) => intact === false)).toEqual([]);
  return (words) => Number(new RegExp(`${words} (-?[\\d.e-]+)`).exec(stdout)?.[1]);
}

const needs = "needs SmolLM2, ../shared/data and tfjs-node";

describe.runIf(isAvailable)(`wrong answers trained into one persona (${needs})`, () => {
  it("finds the trained persona more affected than the others, and equal scores with merged weights and with the adapter", async () => {
    const numberAfter = await run();
    expect(numberAfter("against the others")).toBeLessThan(0);
    expect(numberAfter("p =")).toBeLessThan(0.01);
    expect(numberAfter("merged differ by")).toBeLessThan(1e-3);
  }, 1_800_000);
});
