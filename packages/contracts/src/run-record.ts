export type { TrainingPoint } from "./snapshot.ts";
import type {
  MeasurementWarning,
  MetricValue,
  PhaseClosing,
  RunProblem,
  Snapshot,
  SnapshotKey,
  SnapshotStatus,
  TrainingPoint,
} from "./snapshot.ts";

/** Everything that the files of a run say. `readRun` of `@periodic-eval/store` returns it. */
export interface RunRecord {
  readonly runDir: string;
  /** In the order in which they were run. */
  readonly phases: readonly PhaseRecord[];
  readonly superseded: readonly SupersededFile[];
  /** Files that are damaged, edited, missing or not used. Problems never stop the reader. */
  readonly problems: readonly RunProblem[];
  /** The process whose session writes this run; null if no session is open. */
  readonly writer: Writer | null;
  /** Where the sessions of the run's phases closed, oldest first; also of phases without snapshots. */
  readonly closings: readonly PhaseClosing[];
}

export interface PhaseRecord {
  readonly name: string;
  /** From the phase's last snapshot; null if unknown. */
  readonly maxSteps: number | null;
  /**
   * `finished`: training ended, also early, or its end was measured. `running`: a process writes the phase. `interrupted`: it was
   * stopped or killed. `unknown`: a process on another machine may write it, or nothing says how it ended.
   */
  readonly state: "finished" | "running" | "interrupted" | "unknown";
  /** The step at which the phase closed; null if only its snapshots say how far it got. */
  readonly closedAt: number | null;
  /** Steps of the phases before it. */
  readonly runStepOffset: number;
  /** By step, then id. */
  readonly snapshots: readonly Snapshot[];
  readonly series: readonly Series[];
  /**
   * Σ window seconds / (wall seconds − Σ window seconds), in percent, from the phase's last snapshot that reports it. Null if
   * none does, and if training ran in another process.
   */
  readonly overheadPercent: number | null;
  /** Σ seconds that training was paused for the snapshots of the phase. */
  readonly evaluationSeconds: number;
  /** Metrics that the trainer logged, by step; absent if it logged nothing. */
  readonly training?: readonly TrainingPoint[];
}

/** All measurements of one callback in one phase, by step. */
export interface Series {
  /** The callback's id. */
  readonly id: string;
  readonly evaluation: string;
  readonly on: "model" | "base";
  readonly primaryMetric: string | null;
  readonly points: readonly SeriesPoint[];
}

/** One measurement of a series. */
export interface SeriesPoint {
  /** The snapshot's file, relative to `periodic_eval/`. */
  readonly file: string;
  readonly step: number;
  /** Percent of the phase; null if its length was unknown. */
  readonly pct: number | null;
  /** `step` plus the steps of the run's earlier phases. */
  readonly runStep: number;
  readonly epoch: number;
  readonly status: SnapshotStatus;
  readonly reason: string | null;
  readonly crossed: readonly string[];
  /** ISO 8601 time. */
  readonly createdAt: string;
  readonly metrics: Readonly<Record<string, MetricValue>>;
  readonly paired: Snapshot["paired"];
  /** Reasons to read the metrics with care, or not to judge them. */
  readonly warnings: readonly MeasurementWarning[];
  readonly receipt: ReceiptSummary;
  /** Seconds that training was paused for this measurement. */
  readonly seconds: number;
}

/** The guards' evidence of one measurement, summarized. */
export interface ReceiptSummary {
  /** True: everything observed was unchanged. False: training was disturbed. Null: something was not observed. */
  readonly intact: boolean | null;
  /** Parts that were disturbed, without advisory ones. */
  readonly broken: readonly string[];
  readonly notObserved: readonly string[];
  /** Advisory parts that changed: worth checking, but no disturbance of the training. */
  readonly advisories: readonly string[];
}

/** Whether the measurements of a run or phase left training undisturbed. */
export interface Undisturbed {
  /**
   * `yes`: guards observed weights, optimizer, mode and random numbers in every measurement that took place, and none changed.
   * `no`: a guard saw a change. `not proven`: a guard is missing, or no measurement took place. `not applicable`: guards cannot apply, see `elsewhere`.
   */
  readonly answer: "yes" | "no" | "not proven" | "not applicable";
  /** Measurements that took place, and how many of them are proven and disturbed. */
  readonly measurements: number;
  readonly proven: number;
  readonly disturbed: number;
  /** Guards that saw a change. */
  readonly broken: readonly string[];
  /** Guards that are missing or observed nothing, where they could apply. */
  readonly missing: readonly string[];
  /** Where training runs if guards cannot apply: in another process, whose checkpoints were read, or behind a server. */
  readonly elsewhere: "checkpoint" | "server" | null;
}

/** A snapshot that a newer one replaced, or a damaged snapshot file. */
export interface SupersededFile {
  /** Relative to `superseded/`. */
  readonly file: string;
  /** Null if the file is not a snapshot. */
  readonly key: SnapshotKey | null;
  /** Null if the index line with the reason is lost. */
  readonly why: string | null;
}

/** The process that holds a lock. */
export interface Writer {
  readonly pid: number;
  readonly host: string;
  /**
   * False once it has ended, or has not renewed its lock for a minute, by this process's checks. Null if it cannot be seen from here (in
   * another container, on another machine) and its renewals show nothing yet.
   */
  readonly isAlive: boolean | null;
}
