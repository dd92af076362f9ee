import type { SnapshotKey } from "@periodic-eval/core";
import { namedStream } from "@periodic-eval/core/random";
import { readRun } from "@periodic-eval/store";
import { writePage } from "@periodic-eval/dashboard";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { compiledChild, runChild } from "../../../testing/src/killed-child.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const kills = 20;
const child = compiledChild(new URL("kill-storm-child.test-data.ts", import.meta.url));
const world = fileURLToPath(new URL("../../assets/micro-world", import.meta.url));
const root = temporaryFolder(afterAll);
let whole: { record: unknown; metrics: readonly string[]; weights: string; milliseconds: number };

beforeAll(async () => {
  const { isKilled, milliseconds } = await train(join(root, "whole"));
  expect(isKilled).toBe(false);
  whole = { ...(await outcome(join(root, "whole"))), milliseconds };
});

/**
 * Trains to the end, or kills the process some milliseconds after training begins. The system's clock jumps by `hours`, and the
 * process is stopped for `pauseMs` before it is killed.
 */
const train = (runDir: string, killAfter?: number, { hours = 0, pauseMs = 0 } = {}) =>
  runChild(child, [runDir, world, String(hours)], killAfter, pauseMs);

/** Returns everything that must not depend on kills: snapshots without times, rows, metrics and final weights. */
async function outcome(runDir: string) {
  const run = await readRun(runDir);
  expect(run.problems).toEqual([]);
  const record = run.phases.map(({ name: phase, snapshots }) => ({
    phase,
    snapshots: snapshots.map(({ created_at: _when, timing: _seconds, sha256: _hash, ...lasting }) => ({
      ...lasting,
      rows: readFileSync(
        join(runDir, "periodic_eval", phase, `${lasting.id}_step_${lasting.step}.samples.jsonl`),
        "utf8",
      ),
    })),
  }));
  const indexed = readFileSync(join(runDir, "periodic_eval", "index.jsonl"), "utf8")
    .trimEnd()
    .split("\n");
  const listed = indexed.map((line) => JSON.parse(line) as SnapshotKey);
  const name = ({ phase, id, step }: SnapshotKey) => `${phase} ${id} ${step}`;
  expect(new Set(listed.map(name))).toEqual(
    new Set(run.phases.flatMap(({ snapshots }) => snapshots.map(name))),
  );
  return { record, metrics: metricsOf(runDir), weights: finalWeights(runDir) };
}

/** Returns the metrics of each step in order. A repeated step must have the same metrics. */
function metricsOf(runDir: string): readonly string[] {
  const lines = readFileSync(join(runDir, "metrics.jsonl"), "utf8").trimEnd().split("\n");
  const bySteps = new Map<string, string>();
  for (const line of lines) {
    const { phase, step } = JSON.parse(line) as { readonly phase: string; readonly step: number };
    const before = bySteps.get(`${phase} ${step}`);
    if (before !== undefined) expect(line).toBe(before);
    bySteps.set(`${phase} ${step}`, line);
  }
  return [...bySteps.values()];
}

function finalWeights(runDir: string): string {
  const checkpoints = join(runDir, "checkpoints", "second");
  const last = readdirSync(checkpoints)
    .filter((name) => /^step_\d+$/.test(name))
    .sort((a, b) => Number(a.slice(5)) - Number(b.slice(5)))
    .at(-1)!;
  return readFileSync(join(checkpoints, last, "model.safetensors")).toString("base64");
}

it("measures completely at start, thresholds and end of both phases in the uninterrupted run", () => {
  // 24 rows, of which ⌊0.2 · 24 + ½⌋ = 5 are held out: 19 make ⌈19 / 4⌉ = 5 steps an epoch; validated at 5, 10 and 12.
  expect(whole.metrics).toHaveLength(24);
  expect(whole.metrics.filter((line) => line.includes("eval_loss"))).toHaveLength(6);
  expect(
    (whole.record as { snapshots: { id: string; step: number; status: string }[] }[]).map(({ snapshots }) =>
      snapshots.map(({ id, step, status }) => `${id} ${step} ${status}`).sort(),
    ),
  ).toEqual(
    Array.from({ length: 2 }, () =>
      // 20 % of 12 steps: ceil(2.4), ceil(4.8), ceil(7.2), ceil(9.6), 12; 30 %: ceil(3.6), ceil(7.2), ceil(10.8), end 12
      [
        ...[0, 3, 5, 8, 10, 12].map((step) => `capability ${step} complete`),
        ...[0, 4, 8, 11, 12].map((step) => `replies ${step} complete`),
      ].sort(),
    ),
  );
});

it(
  `loses, repeats and corrupts nothing over ${kills} kills at random moments, with pauses and jumps of the clock`,
  { timeout: kills * 60_000 },
  async () => {
    const random = namedStream("kill-storm");
    for (let left = kills; left > 0;) {
      const runDir = join(root, `killed-${left}`);
      const moments: number[] = [];
      while (left > 0 && moments.length < 3) {
        const moment = Math.round(random() * whole.milliseconds);
        // A tenth of the kills follow a pause.
        const disturbed = { hours: [3, 0, -1][left % 3]!, pauseMs: left % 10 === 0 ? 7000 : 0 };
        if (!(await train(runDir, moment, disturbed)).isKilled) break;
        moments.push(moment);
        left -= 1;
        // The page of a dead run can be written at any time, and page and index can be deleted at any time.
        if (existsSync(join(runDir, "periodic_eval"))) rmSync(await writePage(runDir));
        if (left % 2 === 0) rmSync(join(runDir, "periodic_eval", "index.jsonl"), { force: true });
      }
      await train(runDir);
      const { record, metrics, weights } = await outcome(runDir);
      expect(metrics, `metrics after kills at ${moments.join(", ")} ms`).toEqual(whole.metrics);
      expect(record, `killed after ${moments.join(", ")} ms`).toEqual(whole.record);
      expect(weights === whole.weights, `weights after kills at ${moments.join(", ")} ms`).toBe(true);
      expect(readFileSync(await writePage(runDir), "utf8")).toContain("capability");
      await rm(runDir, { recursive: true });
    }
  },
);
