import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ConditionStop } from "@periodic-eval/core";
import { readCondition } from "@periodic-eval/core/session";
import { readRun, writeFileAtomic } from "@periodic-eval/store";
import type { Terminal } from "../../terminal/terminal.ts";
import type { WatchConfiguration } from "./configuration.ts";
import { lastPassed, type PassedCheckpoint, type WatchState } from "./watch-state.ts";

/** The file, in the run's folder, that says that a condition of `stop_when` was met. A trainer can poll it. */
const stopFile = (runDir: string): string => join(runDir, "stop.json");

/** Writes the file of a stop, and says what to do: the trainer is another program. */
export async function reportStop(
  runDir: string,
  { condition, reason, step, cleanStep }: ConditionStop,
  { passed, terminal }: { readonly passed: readonly PassedCheckpoint[]; readonly terminal: Terminal },
): Promise<void> {
  const isClean = ({ session }: PassedCheckpoint) => cleanStep !== null && session.progress.step <= cleanStep;
  const clean = passed.findLast(isClean)?.path ?? null;
  const content = { condition, reason, step, clean_step: cleanStep, clean_checkpoint: clean };
  await writeFileAtomic(stopFile(runDir), `${JSON.stringify(content, null, 2)}\n`);
  const back = clean === null ? "no checkpoint before it" : `last clean checkpoint: ${clean}`;
  terminal.err(`stop_when: ${reason}; ${back}. Stop the trainer, which is another program.`);
}

/**
 * Returns the stop of an earlier watcher; null if there is none, if its condition is no longer configured, or if its measurement is
 * taken again.
 */
export async function standingStop(
  runDir: string,
  { phase, block: { session } }: Pick<WatchConfiguration, "phase" | "block">,
  state: WatchState | null,
): Promise<{ readonly stop: ConditionStop; readonly isGraded: boolean } | null> {
  const { phases, closings } = await readRun(runDir, undefined, { rows: false });
  const stop = closings.findLast((closing) => closing.phase === phase)?.stop;
  if (stop === undefined) return null;
  const conditions = (session.stopWhen ?? []).map((rule) => (typeof rule === "string" ? rule : rule.when));
  const isConfigured = conditions.some((condition) => readCondition(condition)?.text === stop.condition);
  const snapshots = phases.find(({ name }) => name === phase)?.snapshots ?? [];
  const isThere = snapshots.some(({ id, step }) => id === stop.id && step === stop.measuredAt);
  const passed = state === null ? 0 : lastPassed(state).session.progress.step;
  if (!isConfigured || !isThere || stop.measuredAt > passed) return null;
  return { stop, isGraded: snapshots.every(({ status }) => status !== "grading") };
}

/** Removes the file of an earlier stop. */
export const removeStop = (runDir: string): Promise<void> => rm(stopFile(runDir), { force: true });
