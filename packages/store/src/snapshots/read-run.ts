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
} from "@periodic-eval/contracts";
import { overheadOf } from "./undisturbed.ts";
import { readClosings } from "./closings.ts";
import { nodeFiles, type FileReader } from "../files/file-system.ts";
import { runPaths } from "./layout.ts";
import { readWriter } from "../lock/lock.ts";
import { inspectRun, type InspectOptions } from "./scan-snapshots.ts";
import type { FoundSnapshot } from "./snapshot-file.ts";
import { readSuperseded } from "./superseded.ts";
import { phasesWithTraining, readTrainingFile } from "./training-files.ts";

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
  found: readonly FoundSnapshot[],
  root: string,
): Omit<PhaseRecord, "state" | "closedAt"> {
  const snapshots = found.map(({ snapshot }) => snapshot);
  const last = snapshots.at(-1)!;
  return {
    name,
    maxSteps: last.max_steps,
    runStepOffset: last.run_step - last.step,
    snapshots,
    series: [...grouped(found, ({ snapshot }) => snapshot.id)].map(([id, points]) =>
      seriesOf(id, points, root),
    ),
    overheadPercent: overheadOf(snapshots),
    evaluationSeconds: snapshots.reduce((sum, { timing }) => sum + timing.total_seconds, 0),
  };
}

function seriesOf(id: string, found: readonly FoundSnapshot[], root: string): Series {
  // A skipped or failed measurement may know less about its evaluation than a complete one.
  const described = found.findLast(({ snapshot }) => snapshot.primary_metric !== null) ?? found.at(-1)!;
  const { evaluation, on, primary_metric } = described.snapshot;
  return {
    id,
    evaluation,
    on,
    primaryMetric: primary_metric,
    points: found.map((one) => pointOf(one, root)),
  };
}

function pointOf({ path, snapshot }: FoundSnapshot, root: string): SeriesPoint {
  return {
    file: relative(root, path).replaceAll("\\", "/"),
    step: snapshot.step,
    pct: snapshot.pct,
    runStep: snapshot.run_step,
    epoch: snapshot.epoch,
    status: snapshot.status,
    reason: snapshot.reason,
    crossed: snapshot.crossed,
    createdAt: snapshot.created_at,
    metrics: snapshot.metrics,
    paired: snapshot.paired,
    warnings: snapshot.warnings,
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
