// The CPU time that hashes take in a run, for overhead.ts: they have no switch, so the same operations are repeated on the
// run's own snapshots and rows.
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { nodeFiles, readRows, readRun } from "@periodic-eval/store";

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

/** Returns the CPU seconds of SHA-256 of the rows, and of the snapshots' canonical JSON. */
export async function hashingCost(run: string): Promise<number> {
  const { phases } = await readRun(run);
  let seconds = 0;
  for (const { snapshots, series } of phases) {
    const files = new Map(
      series.flatMap(({ id, points }) => points.map(({ step, file }) => [`${id}/${step}`, file])),
    );
    for (const snapshot of snapshots) {
      const file = join(run, "periodic_eval", files.get(`${snapshot.id}/${snapshot.step}`)!);
      const rows = await readRows(file, snapshot.samples, nodeFiles);
      const text = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
      seconds += costOf(() => {
        sha256(text);
        sha256(canonicalJson(snapshot as unknown as Json));
      });
    }
  }
  return seconds;
}
