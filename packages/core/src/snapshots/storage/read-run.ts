import { relative } from "node:path";
import { grouped } from "../../statistics/grouping.ts";
import { nodeFiles, type FileReader } from "./files.ts";
import { runPaths } from "./layout.ts";
import { writerAt, type Writer } from "./lock.ts";
import { summarizeReceipt, type ReceiptSummary } from "../receipt.ts";
import { scanSnapshots, type FoundSnapshot, type RunProblem } from "./scan.ts";
import type { MetricValue, Snapshot, SnapshotKey, SnapshotStatus } from "../../contracts/snapshot.ts";
import { readSetAside } from "./superseded.ts";

/** One firing of a series. */
export interface SeriesPoint {
  /** Relative to `periodic_eval/`. */
  readonly file: string;
  readonly step: number;
  /** Percent of the phase; null where its length was not known. */
  readonly pct: number | null;
  readonly runStep: number;
  readonly epoch: number;
  readonly status: SnapshotStatus;
  readonly reason: string | null;
  readonly crossed: readonly string[];
  readonly createdAt: string;
  readonly metrics: Readonly<Record<string, MetricValue>>;
  readonly paired: Snapshot["paired"];
  readonly receipt: ReceiptSummary;
  /** Seconds training stood still for it. */
  readonly seconds: number;
}

/** All firings of one callback in one phase, by step. */
export interface Series {
  readonly id: string;
  readonly evaluation: string;
  readonly on: "model" | "base";
  readonly primaryMetric: string | null;
  readonly points: readonly SeriesPoint[];
}

export interface PhaseRecord {
  readonly name: string;
  /** As the last snapshot says; null where it was not known. */
  readonly maxSteps: number | null;
  /** Steps of the phases before it. */
  readonly runStepOffset: number;
  /** By step, then id. */
  readonly snapshots: readonly Snapshot[];
  readonly series: readonly Series[];
  /** Σ window seconds / (wall − Σ window seconds) in percent, as the phase's last snapshot says. */
  readonly overheadPercent: number | null;
  /** Σ seconds training stood still for the snapshots of the phase. */
  readonly evaluationSeconds: number;
}

/** Everything a reader of a run may want to know. */
export interface RunRecord {
  readonly runDir: string;
  /** In order of appearance. */
  readonly phases: readonly PhaseRecord[];
  /** Snapshots that were set aside, and why. */
  readonly superseded: readonly {
    readonly file: string;
    readonly key: SnapshotKey | null;
    readonly why: string | null;
  }[];
  /** Files that could not be used; never fatal. */
  readonly problems: readonly RunProblem[];
  /** The session that writes here; null where none is open. */
  readonly writer: Writer | null;
}

/**
 * Reads a run: finished, running or dead, with or without its index. The only reader; page, tables and scripts all
 * stand on it. A folder without snapshots gives a record without phases. Takes no lock and changes nothing.
 */
export async function readRun(runDir: string, fs: FileReader = nodeFiles): Promise<RunRecord> {
  const paths = runPaths(runDir);
  const { found, problems } = await scanSnapshots(paths.root, fs);
  const byPhase = grouped(found, ({ snapshot }) => snapshot.phase);
  return {
    runDir,
    phases: [...byPhase].map(([name, ofPhase]) => phaseRecord(name, ofPhase, paths.root)),
    superseded: await readSetAside(runDir, fs),
    problems,
    writer: await writerAt(paths.lock, fs),
  };
}

function phaseRecord(name: string, found: readonly FoundSnapshot[], root: string): PhaseRecord {
  const snapshots = found.map(({ snapshot }) => snapshot);
  const last = snapshots.at(-1)!;
  const overheads = snapshots
    .map(({ timing }) => timing.overhead_percent)
    .filter((percent) => percent !== null);
  return {
    name,
    maxSteps: last.max_steps,
    runStepOffset: last.run_step - last.step,
    snapshots,
    series: [...grouped(found, ({ snapshot }) => snapshot.id)].map(([id, points]) =>
      seriesOf(id, points, root),
    ),
    overheadPercent: overheads.at(-1) ?? null,
    evaluationSeconds: snapshots.reduce((sum, { timing }) => sum + timing.total_seconds, 0),
  };
}

function seriesOf(id: string, found: readonly FoundSnapshot[], root: string): Series {
  // A skipped or failed firing may know less of the evaluation than one that was measured.
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
    receipt: summarizeReceipt(snapshot.receipt),
    seconds: snapshot.timing.total_seconds,
  };
}
