import * as z from "zod";
import type { PhaseClosing } from "@periodic-eval/contracts";
import { makeFolder, writeFileAtomic } from "../files/atomic-file.ts";
import { nodeFiles, type FileReader, type FileSystem } from "../files/file-system.ts";
import { runPaths } from "./layout.ts";
import { keepLock, type TakeOptions } from "../lock/lock.ts";
import { readIfPresent } from "../files/read-file.ts";

const schema = z.array(
  z.object({
    phase: z.string(),
    step: z.int().nonnegative(),
    maxSteps: z.int().positive().nullable(),
    finished: z.boolean(),
  }),
);

/** Reads where the phases of a run closed, oldest first. A missing or damaged file says nothing: snapshots then decide. */
export async function readClosings(path: string, fs: FileReader): Promise<readonly PhaseClosing[]> {
  const text = await readIfPresent(path, fs);
  if (text === null) return [];
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return [];
  }
}

/** Writes where a phase closed, as the newest closing of the run. A phase that closes as it did before changes nothing. */
export async function writeClosing(path: string, closing: PhaseClosing, fs: FileSystem): Promise<void> {
  const { phase, step, maxSteps, finished } = closing;
  const closings = await readClosings(path, fs);
  const before = closings.find((one) => one.phase === phase);
  if (before?.step === step && before.maxSteps === maxSteps && before.finished === finished) return;
  const others = closings.filter((one) => one !== before);
  await writeFileAtomic(path, `${JSON.stringify([...others, { phase, step, maxSteps, finished }])}\n`, fs);
}

/**
 * Locks a run for the sessions of its phases, and records the phases that have not begun as closed at step 0: until they end, the
 * run is not finished. Phases that an earlier call declared and that never began are forgotten. Returns the function that
 * releases the lock.
 */
export async function declarePhases(
  runDir: string,
  phases: readonly string[],
  { fs = nodeFiles, onWait }: Pick<TakeOptions, "onWait"> & { readonly fs?: FileSystem } = {},
): Promise<() => Promise<void>> {
  const { root, lock, closings: path } = runPaths(runDir);
  await makeFolder(root, fs);
  const release = await keepLock(lock, fs, onWait && { onWait });
  try {
    const closings = (await readClosings(path, fs)).filter((one) => one.step > 0 || one.finished);
    const isNew = (name: string) => !closings.some(({ phase }) => phase === name);
    const added = phases.filter(isNew).map((phase) => ({ phase, step: 0, maxSteps: null, finished: false }));
    await writeFileAtomic(path, `${JSON.stringify([...added, ...closings])}\n`, fs);
    return release;
  } catch (error) {
    await release();
    throw error;
  }
}
