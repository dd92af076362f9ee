import type { Logger, PhaseBegin, RunProgress, Snapshot } from "@periodic-eval/core";
import { exampleSnapshot } from "@periodic-eval/testing";

/** Returns the progress of a phase of ten steps. */
export function at(phase: string, step: number, runStep = step): RunProgress {
  return { phase, step, runStep, maxSteps: 10, epoch: step / 10, elapsedSeconds: step, ended: false };
}

/** Returns the begin event of a phase of ten steps, which resumes from a checkpoint if `step` is above 0. */
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

/** Returns the loss of a step: unique and exact in float32. */
export const lossAt = (runStep: number): number => 2 - runStep / 64;

/**
 * Logs a run of two phases of ten steps. A kill in the first phase, before a checkpoint exists, makes it start over. A kill in
 * the second makes it resume from the checkpoint of step 4; grading of step 2 finishes only after step 8. At that kill, one
 * snapshot of the first phase is stored but not yet logged. The last measurements have no value; the one at the end failed
 * first.
 *
 * @param open Opens the logger of a process.
 * @param kill Ends a process without closing its logger.
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

/** @param standing Null if the phase has already begun. */
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
    // One loss overflows.
    const loss = offset + step === 13 ? Number.NaN : lossAt(offset + step);
    // Every step has a different speed, even when it is repeated.
    steps += 1;
    await logger.train?.({ loss, tokens_per_second: steps }, at(name, step, offset + step));
  }
}

/** Run steps of the killed run and their losses. */
export const expectedLosses = Array.from(
  { length: 20 },
  (_, i) => [i + 1, i + 1 === 13 ? Number.NaN : lossAt(i + 1)] as const,
);

/** Measured run steps and their accuracies, by phase, in the order of grading. */
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
