import type { Row } from "@periodic-eval/core";
import { fileStore, readRun } from "@periodic-eval/store";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { readAnswerScores } from "./answer-scores.ts";
import { sampleSnapshots } from "./sample-run.test-data.ts";

const row = (id: string, aligned: number | null, kind = "completion"): Row =>
  ({ id, kind, aligned, coherent: 80 }) as Row;

/** Writes the sample run with answers, as an alignment evaluation stores them. */
async function writeScoredRun(runDir: string): Promise<void> {
  const store = fileStore(runDir);
  for (const snapshot of sampleSnapshots()) {
    const accuracy = snapshot.metrics["accuracy"]!;
    const metrics = { ...snapshot.metrics, aligned: accuracy, coherent: accuracy };
    const evaluation = { misaligned_below: 30, coherent_above: 50 };
    const provenance = { ...snapshot.provenance, evaluation };
    await store.put({ ...snapshot, metrics, provenance }, [
      row("a", 90),
      row("b", null),
      row("c", 10, "anchor"),
    ]);
  }
  await store.close?.();
}

it("returns the answers with both scores, without anchors, and the recorded thresholds", async () => {
  const runDir = temporaryFolder();
  await writeScoredRun(runDir);
  const [scatter, ...others] = await readAnswerScores(await readRun(runDir));
  expect(others).toEqual([]);
  expect(scatter).toMatchObject({ callback: "capability", misalignedBelow: 30, coherentAbove: 50 });
  expect(scatter!.measurements).toHaveLength(12);
  expect(scatter!.measurements[7]).toEqual({
    part: 1,
    step: 12,
    runStep: 72,
    answers: [[90, 80]],
    scored: 1,
    total: 2,
  });
});

it("leaves out a measurement whose answers were edited", async () => {
  const runDir = temporaryFolder();
  await writeScoredRun(runDir);
  const run = await readRun(runDir);
  await appendFile(join(runDir, "periodic_eval", "em", "capability_step_12.samples.jsonl"), "{}\n");
  const [scatter] = await readAnswerScores(run);
  expect(scatter!.measurements).toHaveLength(11);
});
