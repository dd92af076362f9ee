import type { Row, Snapshot, SnapshotKey } from "./snapshot.ts";

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
export interface SeriesPoint extends Pick<
  Snapshot,
  "step" | "pct" | "status" | "reason" | "crossed" | "metrics" | "paired" | "warnings"
> {
  /** The snapshot's file, relative to `periodic_eval/`. */
  readonly file: string;
  /** `step` plus the steps of the run's earlier phases. */
  readonly runStep: number;
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
   * `yes`: guards observed weights, optimizer, mode and random numbers in every measurement that took place, and no guard saw a change.
   * `no`: a guard saw a change. `not proven`: a guard is missing or observed nothing, or no measurement took place. `not applicable`: guards cannot apply, see `elsewhere`.
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

/** A file of a run that is damaged or edited. */
export interface RunProblem {
  /** Relative to `periodic_eval/`. */
  readonly file: string;
  /**
   * `unreadable`: not a snapshot. `edited`: its content is not what was written. `rows`: a snapshot's rows are not those that were
   * written. `unavailable`: the file could not be read at this time.
   */
  readonly kind: "unreadable" | "edited" | "rows" | "unavailable";
  /** The measurement; null if it is unknown. */
  readonly key: SnapshotKey | null;
  readonly got: string;
  readonly expected: string;
  /** The consequence for the run. */
  readonly effect: string;
  /** All of the above in one sentence. */
  readonly message: string;
  /** True: the file is not used as a snapshot, and the next session moves it to `superseded/`. */
  readonly invalid: boolean;
}

/** Where the last session of a phase closed. */
export interface PhaseClosing {
  readonly phase: string;
  /** Completed steps of the phase. */
  readonly step: number;
  /** Null if unknown. */
  readonly maxSteps: number | null;
  /** Whether training ended, also early. False: it was interrupted or failed. */
  readonly finished: boolean;
  /** The condition of `stopWhen` that ended training; omitted if none did. */
  readonly stop?: ConditionStop;
}

/** A condition of `stopWhen` that a measurement met, and what follows from it. */
export interface ConditionStop {
  /** As the user wrote it. */
  readonly condition: string;
  /** The step at which training was asked to stop. */
  readonly step: number;
  /** One sentence: the condition, the measurement and the test. */
  readonly reason: string;
  /** Id and step of the measurement that met the condition. */
  readonly id: string;
  readonly measuredAt: number;
  /**
   * The last step before at which no condition was met, by a measurement of each condition's metric at or after it; null if there is
   * none.
   */
  readonly cleanStep: number | null;
}

/** Stores the snapshots of a run. Every write is atomic: a reader sees the old snapshot or the new one, never a part. */
export interface SnapshotStore {
  /**
   * Locks the store for writing and repairs what a crash left behind. The first write does the same if `open` was not called.
   * Reading needs no lock.
   *
   * @throws PeriodicEvalError `store` if another session writes here; it names that session's process.
   */
  open?(): Promise<void>;
  /**
   * Writes the rows, then the snapshot, then its index line. Replaces a snapshot with the same key. May set `sha256` and
   * `samples`.
   */
  put(snapshot: Snapshot, rows: readonly Row[]): Promise<void>;
  /** Returns the snapshot, or null if the store has none with this key. */
  get(key: SnapshotKey): Promise<Snapshot | null>;
  /**
   * Returns the snapshot's rows; empty if it has none.
   *
   * @throws PeriodicEvalError `store` if the rows are not those that were written.
   */
  rows(key: SnapshotKey): Promise<readonly Row[]>;
  /** Returns all snapshots, ordered by phase (as they were run), step and id. */
  list(): Promise<readonly Snapshot[]>;
  /** Returns what `open` found damaged or edited; empty before. */
  problems?(): Promise<readonly RunProblem[]>;
  /** Returns why nothing more can be written, as far as it is known: another process took over the run, or its folder is gone. Else null. */
  lost?(): Error | null;
  /** Moves a snapshot and its rows to `superseded/`. Nothing is deleted. */
  supersede(key: SnapshotKey, why: string): Promise<void>;
  /** Records where a session of a phase closed. Readers use it to tell a finished phase from an interrupted one. */
  recordClosing?(closing: PhaseClosing): Promise<void>;
  /** Returns the last closing of each phase, oldest first. */
  closings?(): Promise<readonly PhaseClosing[]>;
  /**
   * Writes what the trainer of a phase logged: adds points, or replaces all of them. Derived: a session goes on without it if it
   * throws.
   */
  recordTraining?(training: TrainingWrite): Promise<void>;
  /** Returns what the trainer of a phase logged, by step. */
  training?(phase: string): Promise<readonly TrainingPoint[]>;
  /** Releases the lock after pending writes. May be called twice; a later write opens the store again. */
  close?(): Promise<void>;
}

interface TrainingWrite {
  readonly phase: string;
  readonly points: readonly TrainingPoint[];
  /** Whether the points replace those that are stored; else they are added. */
  readonly replace: boolean;
}

/** Metrics that a trainer logged at one step. */
export interface TrainingPoint {
  readonly step: number;
  /** `step` plus the steps of the run's earlier phases. */
  readonly runStep: number;
  /** By name: `loss`, `eval_loss`, `learning_rate`, `tokens_per_second`; null for a value that is not finite. */
  readonly metrics: Readonly<Record<string, number | null>>;
}

/** `nested`: one folder per phase. `flat`: all snapshots directly in `periodic_eval/`. */
export type Layout = "nested" | "flat";
