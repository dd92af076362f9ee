// The records of a session: what the store holds, what is written to it, compared, graded and interrupted.
// Nothing here knows of hooks, guards or the training loop.
import type { SessionOptions, Layout, SnapshotStore } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { Baselines, Comparisons } from "./comparisons.ts";
import { BackgroundGrading } from "./grading.ts";
import { Interrupted } from "./requests.ts";
import { KnownSnapshots, SnapshotWriter } from "./snapshot-writer.ts";
import type { Reporter } from "./reporter.ts";
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
  const { run, layout, baseline = "phase_start", familywise, phase, seed, clock, reporter } = options;
  const store = resolveStore(run, layout, (message) => reporter.warn("store", message));
  const known = new KnownSnapshots(phase);
  const lost = lostRun(store, reporter);
  const writer = new SnapshotWriter(store, known, reporter, lost);
  const baselines = new Baselines(baseline, phase, known, reporter);
  const comparisons = new Comparisons({ seed, familywise, known, writer, baselines, reporter });
  const signal = options.gradingSignal;
  const grading = new BackgroundGrading({ seed, clock, signal, writer, comparisons, reporter });
  const interrupted = new Interrupted(known, writer, reporter);
  const training = new TrainingCurves(store, phase, reporter, lost);
  return { store, lost, known, writer, baselines, comparisons, grading, interrupted, training, reporter };
}

/**
 * Returns the given store, or one that writes files into the given folder. The file store is loaded when it is first used, so
 * that the package's root runs outside Node.
 *
 * @param onWarning Receives the warnings of that store.
 */
export function resolveStore(
  run: string | SnapshotStore,
  layout: Layout = "nested",
  onWarning?: (message: string) => void,
): SnapshotStore {
  if (typeof run !== "string") return run;
  let loading: Promise<SnapshotStore> | null = null;
  let loaded: SnapshotStore | null = null;
  const files = () =>
    (loading ??= import("@periodic-eval/store").then(
      ({ fileStore }) => (loaded = fileStore(run, { layout, ...(onWarning && { onWarning }) })),
    ));
  return {
    open: async () => (await files()).open?.(),
    put: async (snapshot, rows) => (await files()).put(snapshot, rows),
    get: async (key) => (await files()).get(key),
    rows: async (key) => (await files()).rows(key),
    list: async () => (await files()).list(),
    problems: async () => (await (await files()).problems?.()) ?? [],
    lost: () => loaded?.lost?.() ?? null,
    supersede: async (key, why) => (await files()).supersede(key, why),
    recordClosing: async (closing) => (await files()).recordClosing?.(closing),
    closings: async () => (await (await files()).closings?.()) ?? [],
    recordTraining: async (training) => (await files()).recordTraining?.(training),
    training: async (name) => (await (await files()).training?.(name)) ?? [],
    close: async () => (await loading)?.close?.(),
  };
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
