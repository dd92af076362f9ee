import * as z from "zod";
import { basename } from "#platform";
import type { ConditionStop, PhaseClosing, TrainingPoint } from "@periodic-eval/contracts";
import { makeFolder, writeFileAtomic } from "../files/atomic-file.ts";
import { nodeFiles, type FileReader, type FileSystem, storeError } from "../files/file-system.ts";
import { readIfPresent, listIfPresent, readLines } from "../files/read-file.ts";
import { keepLock, type TakeOptions } from "../lock/lock.ts";
import { runPaths, trainingPath } from "./layout.ts";

const schema = z.array(
  z.object({
    phase: z.string(),
    step: z.int().nonnegative(),
    maxSteps: z.int().nonnegative().nullable(),
    finished: z.boolean(),
    stop: z
      .object({
        condition: z.string(),
        step: z.int().nonnegative(),
        reason: z.string(),
        id: z.string(),
        measuredAt: z.int().nonnegative(),
        cleanStep: z.int().nonnegative().nullable(),
      } satisfies Record<keyof ConditionStop, z.ZodType>)
      .optional(),
  }),
);

/** Reads where the phases of a run closed, oldest first. A missing or damaged file says nothing: snapshots then decide. */
export async function readClosings(path: string, fs: FileReader): Promise<readonly PhaseClosing[]> {
  const text = await readIfPresent(path, fs);
  if (text === null) return [];
  try {
    return schema.parse(JSON.parse(text)) as readonly PhaseClosing[];
  } catch {
    return [];
  }
}

/** Writes where a phase closed, as the newest closing of the run. A phase that closes as it did before changes nothing. */
export async function writeClosing(path: string, closing: PhaseClosing, fs: FileSystem): Promise<void> {
  const now = JSON.stringify(schema.element.parse(closing));
  const closings = await readClosings(path, fs);
  const before = closings.find(({ phase }) => phase === closing.phase);
  if (JSON.stringify(before) === now) return;
  const rest = closings.filter((other) => other !== before).map((other) => JSON.stringify(other));
  await writeFileAtomic(path, `[${[...rest, now].join(",")}]\n`, fs);
}

/**
 * Locks a run for the sessions of its phases, and records the phases that have not begun as closed at step 0: until they end, the
 * run is not finished. Phases that an earlier call declared and that never began are forgotten. Returns the function that
 * releases the lock.
 */
export async function declarePhases(
  runDir: string,
  phases: readonly string[],
  { onWait }: Pick<TakeOptions, "onWait"> = {},
): Promise<() => Promise<void>> {
  const { root, lock, closings: path } = runPaths(runDir);
  await makeFolder(root);
  const release = await keepLock(lock, nodeFiles, onWait && { onWait });
  try {
    const begun = (await readClosings(path, nodeFiles)).filter(({ step, finished }) => step > 0 || finished);
    const isNew = (name: string) => !begun.some(({ phase }) => phase === name);
    const added = phases.filter(isNew).map((phase) => ({ phase, step: 0, maxSteps: null, finished: false }));
    await writeFileAtomic(path, `${JSON.stringify([...added, ...begun])}\n`);
    return release;
  } catch (error) {
    await release();
    throw error;
  }
}

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
