import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Logger, PhaseBegin, RunProgress, Snapshot } from "@periodic-eval/core";
import { exampleSnapshot } from "@periodic-eval/core/testing";
import { onTestFinished } from "vitest";

export type AtEnd = (work: () => Promise<void>) => void;

/** @param atEnd of the test; tests that run beside others give their own. */
export async function temporaryFolder(atEnd: AtEnd = onTestFinished): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "periodic-eval-loggers-"));
  atEnd(() => rm(folder, { recursive: true }));
  return folder;
}

/** Where a phase of ten steps stands. */
export function at(phase: string, step: number, runStep = step): RunProgress {
  return { phase, step, runStep, maxSteps: 10, epoch: step / 10, elapsedSeconds: step, ended: false };
}

/** A phase of ten steps that begins, or goes on from the checkpoint of a step. */
export const begins = (phase: string, step: number, changes: Partial<PhaseBegin> = {}): PhaseBegin => ({
  ...at(phase, step),
  resumed: step > 0,
  standing: [],
  ...changes,
});

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
 * A run of two phases of ten steps. It is killed in the first before there is a checkpoint, and begins that anew; it is
 * killed in the second, goes on from the checkpoint of its step 4, and loses grading at step 2 of it until after step 8.
 * The kill comes when a look of the first phase is in the store and not told of yet. The last looks have no value, the one
 * at the end after it had failed.
 *
 * @param open what each process makes of a run.
 * @param kill ends a process without a word.
 */
export async function logKilledRun(open: () => Logger, kill: () => unknown): Promise<void> {
  const first = open();
  await phase(first, "coupling", 0, { from: 0, to: 3 });
  await kill();
  const second = open();
  await phase(second, "coupling", 0, { from: 0, to: 10 });
  await phase(second, "em", 10, { from: 0, to: 7 });
  await second.snapshot?.(capabilityAt("em", 5, 15, 0.25));
  await kill();
  const third = open();
  const standing = [
    capabilityAt("coupling", 0, 0, 0.5),
    capabilityAt("coupling", 9, 9, 0.75),
    capabilityAt("em", 0, 10, 0.5),
  ];
  await phase(third, "em", 10, { from: 4, to: 8 }, standing);
  await third.snapshot?.(capabilityAt("em", 2, 12, 0.75));
  await third.snapshot?.(capabilityAt("em", 5, 15, 0.25));
  await phase(third, "em", 10, { from: 8, to: 10 }, null);
  await third.snapshot?.({ ...capabilityAt("em", 10, 20, 0), status: "failed", reason: "no memory" });
  await third.snapshot?.(capabilityAt("em", 10, 20, null));
  await third.snapshot?.({ ...capabilityAt("em", 9, 19, 0), status: "skipped", metrics: {} });
  await third.close?.();
}

let steps = 0;

/** @param standing null where the phase was begun already. */
async function phase(
  logger: Logger,
  name: string,
  offset: number,
  { from, to }: { readonly from: number; readonly to: number },
  standing: readonly Snapshot[] | null = [],
): Promise<void> {
  const runStep = offset + from;
  if (standing !== null) await logger.begin?.(begins(name, from, { runStep, standing }));
  if (from === 0) await logger.snapshot?.(capabilityAt(name, 0, offset, 0.5));
  for (let step = from + 1; step <= to; step += 1) {
    // One loss is lost to overflow.
    const loss = offset + step === 13 ? Number.NaN : lossAt(offset + step);
    // No step takes as long as another, nor as itself when it is made again.
    steps += 1;
    await logger.train?.({ loss, tokens_per_second: steps }, at(name, step, offset + step));
  }
}

/** Each run step of the killed run with its loss, once. */
export const expectedLosses = Array.from(
  { length: 20 },
  (_, i) => [i + 1, i + 1 === 13 ? Number.NaN : lossAt(i + 1)] as const,
);

/** Each measured run step with its accuracy, by phase, in the order in which they were graded. */
export const expectedAccuracies = {
  coupling: [
    [0, 0.5],
    [9, 0.75],
  ],
  em: [
    [10, 0.5],
    [12, 0.75],
    [15, 0.25],
  ],
} as const;
