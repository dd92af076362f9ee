import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Logger, RunProgress, Snapshot } from "@periodic-eval/core";
import { exampleSnapshot } from "@periodic-eval/core/testing";
import { onTestFinished } from "vitest";

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "periodic-eval-loggers-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

/** Where a phase of ten steps stands. */
export function at(phase: string, step: number, runStep = step): RunProgress {
  return { phase, step, runStep, maxSteps: 10, epoch: step / 10, elapsedSeconds: step, ended: false };
}

export function capabilityAt(
  phase: string,
  step: number,
  runStep: number,
  accuracy: number | null,
): Snapshot {
  const { accuracy: example } = exampleSnapshot().metrics;
  return exampleSnapshot({
    phase,
    step,
    run_step: runStep,
    max_steps: 10,
    created_at: `2026-01-01T00:00:${String(runStep).padStart(2, "0")}.000Z`,
    metrics: { accuracy: { ...example!, value: accuracy } },
    accuracy,
    correct: accuracy === null ? 0 : 4 * accuracy,
    total: 4,
  });
}

/** The loss of a step: no two are the same, and float32 holds them. */
export const lossAt = (runStep: number): number => 2 - runStep / 64;

/**
 * A run of two phases of ten steps that is killed in the second, goes on from the checkpoint of its step 4, and loses
 * grading at step 2 of it until after step 8; the last looks have no value.
 *
 * @param open what each process makes of a run.
 * @param kill ends a process without a word.
 */
export async function logKilledRun(open: () => Logger, kill: () => unknown): Promise<void> {
  const first = open();
  await phase(first, "coupling", 0, { from: 0, to: 10 });
  await phase(first, "em", 10, { from: 0, to: 7 });
  await first.snapshot?.(capabilityAt("em", 5, 15, 0.25));
  await kill();
  const second = open();
  await phase(second, "em", 10, { from: 4, to: 8 });
  await second.snapshot?.(capabilityAt("em", 2, 12, 0.75));
  await second.snapshot?.(capabilityAt("em", 5, 15, 0.25));
  await phase(second, "em", 10, { from: 8, to: 10 }, false);
  await second.snapshot?.(capabilityAt("em", 10, 20, null));
  await second.snapshot?.({ ...capabilityAt("em", 9, 19, 0), status: "skipped", metrics: {} });
  await second.close?.();
}

async function phase(
  logger: Logger,
  name: string,
  offset: number,
  { from, to }: { readonly from: number; readonly to: number },
  begins = true,
): Promise<void> {
  if (begins) await logger.begin?.({ ...at(name, from, offset + from), resumed: from > 0 });
  if (from === 0) await logger.snapshot?.(capabilityAt(name, 0, offset, 0.5));
  for (let step = from + 1; step <= to; step += 1) {
    // One loss is lost to overflow.
    const loss = offset + step === 13 ? Number.NaN : lossAt(offset + step);
    await logger.train?.({ loss }, at(name, step, offset + step));
  }
}

/** Each run step of the killed run with its loss, once. */
export const expectedLosses = Array.from(
  { length: 20 },
  (_, i) => [i + 1, i + 1 === 13 ? Number.NaN : lossAt(i + 1)] as const,
);

/** Each measured run step with its accuracy, by phase, in the order in which they were graded. */
export const expectedAccuracies = {
  coupling: [[0, 0.5]],
  em: [
    [10, 0.5],
    [12, 0.75],
    [15, 0.25],
  ],
} as const;
