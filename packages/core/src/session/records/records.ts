// The records of a session: what the store holds, what is written to it, compared, graded and interrupted.
// Nothing here knows of hooks, guards or the training loop.
import type { SessionOptions, SnapshotStore } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { fileStore } from "@periodic-eval/store";
import { Comparisons } from "./comparisons.ts";
import { Baselines } from "./baselines.ts";
import { BackgroundGrading } from "./grading.ts";
import type { Reporter } from "./reporter.ts";
import { Interrupted } from "./interrupted.ts";
import { SnapshotWriter } from "./snapshot-writer.ts";
import { KnownSnapshots } from "./known-snapshots.ts";
import { TrainingCurves } from "./training-curves.ts";

export type SessionRecords = ReturnType<typeof createRecords>;

interface RecordsOptions extends Pick<SessionOptions, "run" | "layout" | "baseline" | "familywise"> {
  readonly phase: string;
  readonly seed: string;
  readonly clock: () => number;
  /** Aborted when grading must end. */
  readonly gradingSignal: AbortSignal;
  readonly reporter: Reporter;
}

export function createRecords(options: RecordsOptions) {
  const { run, layout = "nested", baseline = "phase_start", familywise, phase, seed } = options;
  const { clock, reporter, gradingSignal: signal } = options;
  const onWarning = (message: string) => reporter.warn("store", message);
  const store = typeof run === "string" ? fileStore(run, { layout, onWarning }) : run;
  const known = new KnownSnapshots(phase);
  const lost = lostRun(store, reporter);
  const writer = new SnapshotWriter(store, known, reporter, lost);
  const baselines = new Baselines(baseline, phase, known, reporter);
  const comparisons = new Comparisons({ seed, familywise, known, writer, baselines, reporter });
  const grading = new BackgroundGrading({ seed, clock, signal, writer, comparisons, reporter });
  const interrupted = new Interrupted(known, writer, reporter);
  const training = new TrainingCurves(store, phase, reporter, lost);
  return { store, lost, known, writer, baselines, comparisons, grading, interrupted, training, reporter };
}

/** Returns why the run can no longer be written; null while it can. Warns once. A loss is final. */
export function lostRun(store: SnapshotStore, reporter: Reporter): () => Error | null {
  let lost: Error | null = null;
  return () => {
    if (lost !== null) return lost;
    lost = store.lost?.() ?? null;
    if (lost !== null) reporter.warn("store", `${errorMessage(lost)} Measuring stops.`);
    return lost;
  };
}
