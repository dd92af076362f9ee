import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ConditionStop } from "@periodic-eval/core";
import { writeFileAtomic } from "@periodic-eval/store";
import type { PassedCheckpoint } from "./watch-state.ts";

/** The file, in the run's folder, that says that a condition of `stop_when` was met. A trainer can poll it. */
const stopFile = (runDir: string): string => join(runDir, "stop.json");

/**
 * Writes the file of a stop.
 *
 * @returns The path of the last clean checkpoint; null if there is none.
 */
export async function writeStop(
  runDir: string,
  { condition, reason, step, cleanStep }: ConditionStop,
  passed: readonly PassedCheckpoint[],
): Promise<string | null> {
  const isClean = ({ session }: PassedCheckpoint) => cleanStep !== null && session.progress.step <= cleanStep;
  const clean = passed.findLast(isClean)?.path ?? null;
  const content = { condition, reason, step, clean_step: cleanStep, clean_checkpoint: clean };
  await writeFileAtomic(stopFile(runDir), `${JSON.stringify(content, null, 2)}\n`);
  return clean;
}

/** Removes the file of an earlier stop. */
export const removeStop = (runDir: string): Promise<void> => rm(stopFile(runDir), { force: true });
