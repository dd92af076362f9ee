import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import type { Snapshot } from "@periodic-eval/contracts";

interface Ended {
  readonly snapshots: readonly Snapshot[];
  readonly warnings: readonly string[];
}

/** Runs the training, and stops its process for `seconds` in the measurements of `steps`. */
async function trainWithStops(steps: readonly number[], seconds: number): Promise<Ended> {
  const file = fileURLToPath(new URL("pauses-child.test-data.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", "-C", "@periodic-eval/source", file], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let last = "";
  for await (const line of createInterface(child.stdout)) {
    last = line;
    const step = /^measuring (\d+)$/.exec(line)?.[1];
    if (step === undefined || !steps.includes(Number(step))) continue;
    child.kill("SIGSTOP");
    await sleep(1000 * seconds);
    child.kill("SIGCONT");
  }
  return JSON.parse(last) as Ended;
}

it("skips no measurement and charges nothing when the process is stopped in the first, a middle and the last one", async () => {
  const { snapshots, warnings } = await trainWithStops([0, 10, 20], 10);
  expect(snapshots.map(({ step, status }) => [step, status])).toEqual(
    [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20].map((step) => [step, "complete"]),
  );
  // Each takes 0.04 s, and up to 1 s of a pause is not seen.
  for (const { timing } of snapshots) expect(timing.measure_seconds).toBeLessThan(4);
  const sentence =
    /^session of phase "train": paused for 9(\.\d+)? s, which counts neither as training nor as measuring$/;
  expect(warnings).toHaveLength(3);
  for (const warning of warnings) expect(warning).toMatch(sentence);
});

it("reports no pause of a process that blocks itself", async () => {
  expect((await trainWithStops([], 0)).warnings).toEqual([]);
});
