import { basename } from "#platform";
import * as z from "zod";
import type { TrainingPoint } from "@periodic-eval/contracts";
import { writeFileAtomic } from "../files/atomic-file.ts";
import { storeError, type FileReader, type FileSystem } from "../files/file-system.ts";
import { listIfPresent, readLines } from "../files/read-file.ts";
import { runPaths, trainingPath } from "./layout.ts";

const lineSchema = z.object({
  step: z.int().nonnegative(),
  run_step: z.int().nonnegative(),
  metrics: z.record(z.string(), z.number().nullable()),
});

/**
 * Reads the training metrics of a phase, by step; empty if there are none. They are derived: a missing, damaged or unfinished
 * line is left out.
 */
export async function readTrainingFile(
  runDir: string,
  phase: string,
  fs: FileReader,
): Promise<readonly TrainingPoint[]> {
  const lines = await readLines(trainingPath(runDir, phase), fs).catch(() => []);
  return mergedBySteps(lines.flatMap(parseLine));
}

/** Returns the names of the phases that have training metrics. */
export async function phasesWithTraining(runDir: string, fs: FileReader): Promise<ReadonlySet<string>> {
  const entries = await listIfPresent(runPaths(runDir).training, fs).catch(() => []);
  return new Set(
    entries
      .filter(({ name, isFolder }) => !isFolder && name.endsWith(".jsonl"))
      .map(({ name }) => basename(name, ".jsonl")),
  );
}

function parseLine(text: string): readonly TrainingPoint[] {
  try {
    const { step, run_step, metrics } = lineSchema.parse(JSON.parse(text));
    return [{ step, runStep: run_step, metrics }];
  } catch {
    return [];
  }
}

/** Sorts points and joins those of the same step; the later value of a metric counts. */
function mergedBySteps(points: readonly TrainingPoint[]): readonly TrainingPoint[] {
  const byStep = new Map<number, TrainingPoint>();
  for (const point of points) {
    const metrics = { ...byStep.get(point.step)?.metrics, ...point.metrics };
    byStep.set(point.step, { ...point, metrics });
  }
  return [...byStep.values()].sort((a, b) => a.step - b.step);
}

/**
 * Writes the training metrics of a phase: appends points, or replaces the whole file atomically. An append is not synced: a crash
 * of the machine may lose the newest points, and a kill may leave an unfinished last line.
 *
 * @throws PeriodicEvalError `store` with the path and a fix.
 */
export async function writeTrainingFile(
  runDir: string,
  { phase, points, replace }: { phase: string; points: readonly TrainingPoint[]; replace: boolean },
  fs: FileSystem,
): Promise<void> {
  const path = trainingPath(runDir, phase);
  const text = points
    .map(({ step, runStep, metrics }) => `${JSON.stringify({ step, run_step: runStep, metrics })}\n`)
    .join("");
  try {
    await fs.makeFolder(runPaths(runDir).training);
    if (replace) return await writeFileAtomic(path, text, fs);
    const file = await fs.open(path, "append");
    try {
      await file.write(text);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw storeError(path, error);
  }
}
