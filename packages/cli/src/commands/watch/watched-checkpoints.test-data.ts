// Checkpoints of an adapter and of a whole model, watched by both tiers of tests.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Snapshot } from "@periodic-eval/core";
import { useBackend } from "@periodic-eval/models";
import { readRun } from "@periodic-eval/store";
import { afterAll, beforeAll, expect } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { watchArgs, writeCheckpoint } from "./written-checkpoints.test-data.ts";

/** Writes the checkpoints before the tests of a file, and removes them after. */
export function watchedCheckpoints() {
  const root = temporaryFolder(afterAll);
  const config = join(root, "block.yaml");
  const adapters = join(root, "adapters");
  const full = join(root, "full");
  // Percents are due at 2, 4, 6, 8 and 10.
  const steps = [1, 3, 4, 8, 10];

  beforeAll(async () => {
    await useBackend({ backend: "wasm" });
    const block = { eval_every_percent: 20, questions: microWorld("questions.jsonl"), subsample_n: 30 };
    await writeFile(config, JSON.stringify({ periodic_eval: block, loggers: { jsonl: {} }, seed: 7 }));
    for (const step of steps) await writeCheckpoint(adapters, { kind: "adapter", step, maxSteps: 10 });
    for (const step of [5, 10]) await writeCheckpoint(full, { kind: "full", step, maxSteps: 10 });
  });

  const watch = (checkpoints: string, runDir: string, ...args: readonly string[]) =>
    runCommand(watchArgs(checkpoints, { config, runDir: join(root, runDir) }, "--backend", "wasm", ...args));

  async function snapshotsOf(runDir: string): Promise<readonly Snapshot[]> {
    const { phases, problems } = await readRun(join(root, runDir));
    expect(problems).toEqual([]);
    return phases.flatMap(({ snapshots }) => snapshots);
  }

  return { root, config, adapters, full, steps, watch, snapshotsOf };
}
