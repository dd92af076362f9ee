import { namedStream } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/core/snapshots";
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";

const kills = process.env["PERIODIC_EVAL_FULL"] === "1" ? 50 : 5;
const child = fileURLToPath(new URL("kill-storm.child.ts", import.meta.url));
const world = fileURLToPath(new URL("../assets/micro-world", import.meta.url));
let root = "";
let whole: { record: unknown; weights: string; milliseconds: number };

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "kill-storm-"));
  const start = performance.now();
  expect(await train(join(root, "whole"))).toBe("exit 0");
  whole = { ...(await outcome(join(root, "whole"))), milliseconds: performance.now() - start };
}, 120_000);
afterAll(() => rm(root, { recursive: true }));

/** Runs the training to its end, or kills it after some milliseconds. */
function train(runDir: string, killAfter?: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const node = spawn(
      process.execPath,
      ["--import", "tsx", "-C", "@periodic-eval/source", child, runDir, world],
      {
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
    let stderr = "";
    node.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    const timer = killAfter === undefined ? undefined : setTimeout(() => node.kill("SIGKILL"), killAfter);
    node.on("error", reject);
    node.on("exit", (code, signal) => {
      clearTimeout(timer);
      if (signal === null && code !== 0) reject(new Error(stderr));
      else resolve(signal ?? `exit ${code}`);
    });
  });
}

/** What must be equal however often a run was killed: every snapshot but its times, every row, the final weights. */
async function outcome(runDir: string) {
  const run = await readRun(runDir);
  expect(run.problems).toEqual([]);
  const record = run.phases.map(({ name: phase, snapshots }) => ({
    phase,
    snapshots: snapshots.map(({ created_at: _when, timing: _seconds, ...lasting }) => ({
      ...lasting,
      rows: readFileSync(
        join(runDir, "periodic_eval", phase, `${lasting.id}_step_${lasting.step}.samples.jsonl`),
        "utf8",
      ),
    })),
  }));
  return { record, weights: finalWeights(runDir) };
}

function finalWeights(runDir: string): string {
  const checkpoints = join(runDir, "checkpoints", "second");
  const last = readdirSync(checkpoints)
    .filter((name) => /^step_\d+$/.test(name))
    .sort((a, b) => Number(a.slice(5)) - Number(b.slice(5)))
    .at(-1)!;
  return readFileSync(join(checkpoints, last, "model.safetensors")).toString("base64");
}

it("has a run to compare with: both phases, start, thresholds and end, all complete", () => {
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
  `loses, repeats and tears nothing over ${kills} kills at random moments`,
  { timeout: kills * 60_000 },
  async () => {
    const random = namedStream("kill-storm");
    for (let i = 0; i < kills; i += 1) {
      const runDir = join(root, `killed-${i}`);
      const moments: number[] = [];
      for (let attempt = 0; attempt < 3; attempt += 1) {
        moments.push(Math.round(random() * whole.milliseconds));
        if ((await train(runDir, moments.at(-1))) !== "SIGKILL") break;
        if (i % 3 === 1) rmSync(join(runDir, "periodic_eval", "index.jsonl"), { force: true });
        if (i % 5 === 2) rmSync(join(runDir, "periodic_eval", "state.json"), { force: true });
      }
      await train(runDir);
      const { record, weights } = await outcome(runDir);
      expect(record, `killed after ${moments.join(", ")} ms`).toEqual(whole.record);
      expect(weights === whole.weights, `weights after kills at ${moments.join(", ")} ms`).toBe(true);
      await rm(runDir, { recursive: true });
    }
  },
);
