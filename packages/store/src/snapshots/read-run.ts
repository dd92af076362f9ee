import { relative } from "#platform";
import {
  type PhaseRecord,
  type ReceiptSummary,
  type RunRecord,
  type Series,
  type SeriesPoint,
  type TrainingPoint,
  type Writer,
  type Evidence,
  type PhaseClosing,
  type Snapshot,
  grouped,
  type Row,
  type RunProblem,
} from "@periodic-eval/contracts";
import { configError } from "@periodic-eval/contracts/options";
import { nodeFiles, type FileReader } from "../files/file-system.ts";
import { listIfPresent } from "../files/read-file.ts";
import { readWriter } from "../lock/lock.ts";
import { runPaths, keyText } from "./layout.ts";
import { readClosings, phasesWithTraining, readTrainingFile } from "./phase-files.ts";
import { inspectRun, type InspectOptions, scanSnapshots } from "./scan-snapshots.ts";
import { type FoundSnapshot, readRows } from "./snapshot-file.ts";
import { readSuperseded } from "./superseded.ts";
import { overheadOf } from "./undisturbed.ts";

/**
 * Reads a run, whether it is finished, in progress or interrupted, with or without its index. Page, tables and scripts all use
 * this reader. Takes no lock and changes nothing. A folder without snapshots gives a record without phases. Verifies everything
 * that it reads, and lists in `problems` damaged or edited snapshots and damaged, edited or missing rows. Edited snapshots are left out.
 *
 * @param options.rows Whether to verify the rows, which reads them all. Default true.
 */
export async function readRun(
  runDir: string,
  fs: FileReader = nodeFiles,
  options: InspectOptions = {},
): Promise<RunRecord> {
  const paths = runPaths(runDir);
  const { found, problems } = await inspectRun(runDir, fs, options);
  const byPhase = [...grouped(found, ({ snapshot }) => snapshot.phase)];
  const closings = await readClosings(paths.closings, fs);
  const writer = await readWriter(paths.lock, fs);
  const training = await readTraining(
    runDir,
    byPhase.map(([name]) => name),
    fs,
  );
  return {
    runDir,
    phases: byPhase.map(([name, ofPhase], index) => {
      const closing = closings.findLast(({ phase }) => phase === name);
      const record = phaseRecord(name, ofPhase, paths.root);
      const state = stateOf(record.snapshots, closing, index === byPhase.length - 1, writer);
      const points = training.get(name);
      return { ...record, ...state, ...(points !== undefined && { training: points }) };
    }),
    superseded: await readSuperseded(runDir, fs),
    problems,
    writer,
    closings,
  };
}

/** Returns what the trainers of phases logged, without phases that logged nothing. */
async function readTraining(
  runDir: string,
  phases: readonly string[],
  fs: FileReader,
): Promise<ReadonlyMap<string, readonly TrainingPoint[]>> {
  const logged = await phasesWithTraining(runDir, fs);
  const read = new Map<string, readonly TrainingPoint[]>();
  for (const phase of phases.filter((name) => logged.has(name))) {
    const points = await readTrainingFile(runDir, phase, fs);
    if (points.length > 0) read.set(phase, points);
  }
  return read;
}

/** Returns how a phase ended: by its closing, else by its snapshots and the lock. */
function stateOf(
  snapshots: readonly Snapshot[],
  closing: PhaseClosing | undefined,
  isLast: boolean,
  writer: Writer | null,
): Pick<PhaseRecord, "state" | "closedAt"> {
  const last = snapshots.at(-1)!;
  const isMeasuredAtEnd = snapshots.some(({ pct, crossed }) => pct === 100 || crossed.includes("end"));
  // A process that was killed later leaves snapshots of later steps, but no closing.
  const isCurrent = closing !== undefined && closing.step >= last.step;
  const closedAt = isCurrent ? closing.step : null;
  if (isCurrent ? closing.finished : isMeasuredAtEnd) return { state: "finished", closedAt };
  if (isLast && writer !== null && writer.isAlive !== false)
    return { state: writer.isAlive === null ? "unknown" : "running", closedAt: null };
  return { state: isLast || isCurrent ? "interrupted" : "unknown", closedAt };
}

function phaseRecord(
  name: string,
  entries: readonly FoundSnapshot[],
  root: string,
): Omit<PhaseRecord, "state" | "closedAt"> {
  const snapshots = entries.map(({ snapshot }) => snapshot);
  const last = snapshots.at(-1)!;
  return {
    name,
    maxSteps: last.max_steps,
    runStepOffset: last.run_step - last.step,
    snapshots,
    series: [...grouped(entries, ({ snapshot }) => snapshot.id)].map(([id, points]) =>
      seriesOf(id, points, root),
    ),
    overheadPercent: overheadOf(snapshots),
    evaluationSeconds: snapshots.reduce((sum, { timing }) => sum + timing.total_seconds, 0),
  };
}

function seriesOf(id: string, entries: readonly FoundSnapshot[], root: string): Series {
  // A skipped or failed measurement may know less about its evaluation than a complete one.
  const described = entries.findLast(({ snapshot }) => snapshot.primary_metric !== null) ?? entries.at(-1)!;
  const { evaluation, on, primary_metric } = described.snapshot;
  return {
    id,
    evaluation,
    on,
    primaryMetric: primary_metric,
    points: entries.map((entry) => pointOf(entry, root)),
  };
}

function pointOf({ path, snapshot }: FoundSnapshot, root: string): SeriesPoint {
  const { step, pct, status, reason, crossed, metrics, paired, warnings } = snapshot;
  return {
    step,
    pct,
    status,
    reason,
    crossed,
    metrics,
    paired,
    warnings,
    file: relative(root, path).replaceAll("\\", "/"),
    runStep: snapshot.run_step,
    receipt: summarizeReceipt(snapshot.receipt),
    seconds: snapshot.timing.total_seconds,
  };
}

/** Summarizes evidence. Without evidence `intact` is null: nothing was observed. */
export function summarizeReceipt(receipt: readonly Evidence[]): ReceiptSummary {
  const parts = (is: (evidence: Evidence) => boolean) => receipt.filter(is).map(({ part }) => part);
  const broken = parts(({ intact, advisory }) => intact === false && advisory !== true);
  const notObserved = parts(({ intact, advisory }) => intact === null && advisory !== true);
  const advisories = parts(({ intact, advisory }) => intact === false && advisory === true);
  const isUnknown = receipt.length === 0 || notObserved.length > 0;
  return { intact: broken.length > 0 ? false : isUnknown ? null : true, broken, notObserved, advisories };
}

/** The measurements of another run at the start of its phases, which serve as a baseline. */
export interface EarlierRun {
  /** The path as the user gave it. */
  readonly path: string;
  /** Damaged and edited snapshots. */
  readonly problems: readonly RunProblem[];
  /** Returns the snapshot of `id` before step 1, from the phase of this name, else from the first phase that has one. */
  startOf(phase: string, id: string): Snapshot | null;
  rows(snapshot: Snapshot): Promise<readonly Row[]>;
}

/**
 * Reads the snapshots of another run, without locking it. The run may be in progress.
 *
 * @param path The run's folder, its `periodic_eval` folder, or a phase's folder in that.
 * @throws PeriodicEvalError `config` if it has no snapshot.
 */
export async function readEarlierRun(path: string): Promise<EarlierRun> {
  const { root } = runPaths(path);
  const isRun = (await listIfPresent(root, nodeFiles)).length > 0;
  const { found, problems } = await scanSnapshots(isRun ? root : path, nodeFiles);
  if (found.length === 0) {
    throw configError({
      where: "session options",
      path: ["baseline"],
      got: `${path}, which has no ${problems.length === 0 ? "snapshot" : `readable snapshot: ${problems[0]!.message}`}`,
      expected: "the folder of an earlier run, or its folder of snapshots",
      fix: 'Give the `runDir` of that run, or "phase_start".',
    });
  }
  const files = new Map(found.map((entry) => [keyText(entry.snapshot), entry.path]));
  return {
    path,
    problems,
    startOf(phase, id) {
      const starts = found
        .map(({ snapshot }) => snapshot)
        .filter((snapshot) => snapshot.id === id && snapshot.crossed.includes("start"));
      const samePhase = starts.find((snapshot) => snapshot.phase === phase);
      // The start of another phase does not stand in for one that is damaged.
      const isLost = problems.some(
        ({ key, invalid }) =>
          (key === null && invalid) || (key?.phase === phase && key.id === id && key.step === 0),
      );
      return samePhase ?? (isLost ? null : (starts[0] ?? null));
    },
    async rows(snapshot) {
      return readRows(files.get(keyText(snapshot))!, snapshot.samples, nodeFiles);
    },
  };
}
