// The CPU time that hashes and freezing take in a run, for overhead.ts: they have no switch, so the same operations are
// repeated on the run's own snapshots, rows and metrics.
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Json } from "@periodic-eval/core";
import { deepFreeze, frozenCopy } from "@periodic-eval/core/internal";
import { canonicalJson } from "@periodic-eval/core/random";
import { nodeFiles, readRows, readRun } from "@periodic-eval/core/snapshots";

/** CPU seconds. */
export interface IntegrityCost {
  /** SHA-256 of the rows, of the snapshots' canonical JSON, and of the lines of the index. */
  readonly hashing: number;
  /** Copying and freezing of items, requests, rows, results and snapshots, and of the metrics of each step. */
  readonly freezing: number;
}

/** Returns the CPU seconds of this process, user and system. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

const repeats = 50;

/** Returns the CPU seconds of one call of `work`, as the mean of many. */
function costOf(work: () => void): number {
  const before = cpuSeconds();
  for (let repeat = 0; repeat < repeats; repeat += 1) work();
  return (cpuSeconds() - before) / repeats;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

export async function integrityCost(run: string, steps: number): Promise<IntegrityCost> {
  const { phases } = await readRun(run);
  let [hashing, freezing] = [0, 0];
  for (const { snapshots, series } of phases) {
    const files = new Map(
      series.flatMap(({ id, points }) => points.map(({ step, file }) => [`${id}/${step}`, file])),
    );
    for (const snapshot of snapshots) {
      const file = join(run, "periodic_eval", files.get(`${snapshot.id}/${snapshot.step}`)!);
      const rows = await readRows(file, snapshot.samples, nodeFiles);
      const text = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
      const line = JSON.stringify({ ...snapshot, metrics: null });
      hashing += costOf(() => {
        sha256(text);
        sha256(canonicalJson(snapshot as unknown as Json));
        sha256(line);
      });
      freezing += costOf(() => {
        // Items and requests are about as large as the rows. The evaluation's stages each freeze what they receive.
        frozenCopy(rows);
        frozenCopy(rows);
        const own = frozenCopy(rows);
        for (let stage = 0; stage < 3; stage += 1) deepFreeze(own);
        frozenCopy(snapshot);
      });
    }
  }
  freezing += costOf(() => {
    for (let step = 0; step < steps; step += 1) {
      frozenCopy({ loss: step });
      frozenCopy({ loss: step });
    }
  });
  return { hashing, freezing };
}
