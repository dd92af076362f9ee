import type { MeasureRequest, TrainerCallback } from "../contracts/callback.ts";
import type { AnyEvaluation, Row } from "../contracts/evaluation.ts";
import { mathRandomGuard } from "../guard/randomness.ts";
import type { Guard } from "../contracts/guard.ts";
import type { Json } from "../contracts/json.ts";
import { errorMessage } from "../internal/error-message.ts";
import type { Progress } from "../contracts/schedule.ts";
import type { EarlierRun } from "../snapshots/storage/earlier-run.ts";
import type { Evidence, Snapshot, SnapshotStore } from "../contracts/snapshot.ts";
import { recordsOf, type Records } from "./records/known-records.ts";
import { nothingLearned, type Learned } from "./budget/learned.ts";
import { storeOf } from "./records/store.ts";
import { telling, type Telling } from "./loop/log-events.ts";
import type { OwedFiring, RunProgress, SessionOptions } from "../contracts/session.ts";

/** A request in the queue, and who asked. */
export interface Asked extends MeasureRequest {
  readonly by: TrainerCallback;
}

/** The items of one evaluation for one model. */
export interface PreparedItems {
  /** Which model: the items may depend on its tokenizer and context length. */
  readonly model: string;
  readonly items: readonly Row[];
  readonly itemsHash: string;
}

/** A snapshot that was written, and what failed on the way. */
export interface Finished {
  readonly snapshot: Snapshot;
  readonly failure: { readonly by: TrainerCallback | null; readonly error: unknown } | null;
}

/** What one guard saw one hook do since the last snapshot of its callback: the first time, and how often since. */
export interface HookEvidence {
  readonly first: Evidence;
  readonly times: number;
  readonly lastStep: number;
}

/** A snapshot on its way to the store. */
export interface Unwritten {
  readonly snapshot: Snapshot;
  readonly rows: readonly Row[];
  /**
   * Why what the store has under this key is set aside first; null where there is nothing, or no more. Entries of one
   * key share it.
   */
  readonly stale: { why: string | null };
  /** What the store said when it refused it last; null where it was not refused yet. */
  refusal: { readonly error: unknown } | null;
}

/** What a session holds; its parts (hooks, window, grading, resume) work on this. */
export interface Run {
  readonly options: SessionOptions;
  readonly phase: string;
  readonly seed: string;
  readonly callbacks: readonly TrainerCallback[];
  /** Round every measurement, in order. */
  readonly guards: readonly Guard[];
  /** Those that are entered round hooks as well. */
  readonly hookGuards: readonly Guard[];
  readonly telling: Telling;
  /** Aborted where measuring must end, for either reason. */
  readonly signal: AbortSignal;
  readonly clock: () => number;
  readonly now: () => string;
  readonly store: SnapshotStore;
  /** Read by `begin`. */
  records: Records;
  runStepOffset: number;
  progress: Progress;
  previous: Progress | null;
  /** True where a measurement may still be asked for. */
  isMeasuring: boolean;
  queue: Asked[];
  stop: string | null;
  /** The hook that runs; null where none does. */
  hook: string | null;
  /** What an abort cut off at the step where the run stands, by snapshot id, until a record answers it. */
  readonly owed: Map<string, OwedFiring>;
  /** What a guard saw disturbed, where that ends training. */
  brokenReceipt: string | null;
  save: string | null;
  /** Told to the loop at the end of the call that met it. */
  toThrow: unknown;
  /** Items of each evaluation and model, as `items()` gave them. */
  readonly prepared: Map<AnyEvaluation, PreparedItems[]>;
  /** Evaluations of optional callbacks whose data is missing, and why. */
  readonly unavailable: Map<AnyEvaluation, string>;
  /** The run that the baseline is taken of; null where it is this one. */
  earlier: EarlierRun | null;
  /** Evaluations that are measured without the adapter as well, for a baseline. */
  readonly adapterOff: Set<AnyEvaluation>;
  /** What guards saw hooks disturb, by callback, until a snapshot of that callback takes it. */
  readonly hookEvidence: Map<TrainerCallback, Map<string, HookEvidence>>;
  /** Callback, guard and hook of each disturbance that was warned of. */
  readonly toldHooks: Set<string>;
  /** Ids of which it was said that no earlier snapshot can be compared with. */
  readonly toldIncomparable: Set<string>;
  /** What each callback gave last for a checkpoint, or the one resumed from held. */
  readonly states: Map<string, Json>;
  /** Numbers that hooks reported, for the loggers. */
  reported: Readonly<Record<string, number>>[];
  /** Snapshots that the hooks have not been told of. */
  finished: Finished[];
  /** Snapshots that the store refused; written again with the next one. */
  unwritten: Unwritten[];
  /** Settles when the last writing that was begun is over. */
  writing: Promise<void>;
  /** The last grading of each callback id: those of one id are graded in order. */
  readonly gradings: Map<string, Promise<void>>;
  /** Aborted where `close` is called in the middle of another call. */
  readonly endMeasuring: AbortController;
  /** Aborted at `close` when time is up. */
  readonly endGrading: AbortController;
  /** Aborted where grading must end, for either reason. */
  readonly gradingSignal: AbortSignal;
  readonly learned: Learned;
  /** Ids that the open window has still to measure. */
  readonly windowWaiting: Set<string>;
  /** Where `saveAtFiring` put the weights of the open window; null before it was called. */
  saved: Promise<NonNullable<Snapshot["saved"]>> | null;
  /** Seconds that training stood still, before the window that is open. */
  windowSeconds: number;
  windowOpenedAt: number | null;
  /** What the clock would have said when the phase had run for 0 seconds. */
  origin: number;
}

/** Where the run stands, as loggers are told it. */
export const runProgress = ({ progress, phase, runStepOffset }: Run): RunProgress => ({
  ...progress,
  phase,
  runStep: runStepOffset + progress.step,
});

export function createRun(options: SessionOptions): Run {
  const phase = options.phase ?? "train";
  const given = options.signal === undefined ? [] : [options.signal];
  const endMeasuring = new AbortController();
  const endGrading = new AbortController();
  // The session's own guard is outermost, so that guards given may draw from `Math.random` as well.
  const guards = [mathRandomGuard(), ...(options.guards ?? [])];
  return {
    options,
    phase,
    seed: options.seed ?? "42",
    callbacks: [...options.callbacks],
    guards,
    hookGuards: guards.filter(({ around }) => around === "hooks"),
    telling: telling(options.loggers ?? []),
    signal: AbortSignal.any([...given, endMeasuring.signal]),
    clock: options.clock ?? (() => performance.now() / 1000),
    now: options.now ?? (() => new Date().toISOString()),
    store: storeOf(options.run, options.layout),
    records: recordsOf([], phase, null),
    runStepOffset: 0,
    progress: options.resume?.progress ?? {
      step: 0,
      maxSteps: options.maxSteps,
      epoch: 0,
      elapsedSeconds: 0,
      ended: false,
    },
    previous: null,
    isMeasuring: true,
    queue: [],
    stop: null,
    hook: null,
    owed: new Map(),
    brokenReceipt: null,
    save: null,
    toThrow: null,
    prepared: new Map(),
    unavailable: new Map(),
    earlier: null,
    adapterOff: new Set(),
    hookEvidence: new Map(),
    toldHooks: new Set(),
    toldIncomparable: new Set(),
    states: new Map(),
    reported: [],
    finished: [],
    unwritten: [],
    writing: Promise.resolve(),
    gradings: new Map(),
    endMeasuring,
    endGrading,
    gradingSignal: AbortSignal.any([...given, endGrading.signal]),
    learned: nothingLearned(),
    windowWaiting: new Set(),
    saved: null,
    windowSeconds: 0,
    windowOpenedAt: null,
    origin: 0,
  };
}

/** Why the run is aborted, null where it is not. */
export function abortReason({ signal }: Pick<Run, "signal">): string | null {
  if (!signal.aborted) return null;
  const { reason } = signal as { reason: unknown };
  const isDefault = reason instanceof DOMException && reason.name === "AbortError";
  return isDefault ? "aborted" : `aborted: ${errorMessage(reason)}`;
}

/** Seconds that the phase has run, and how many of them training stood still. */
export function secondsOf(run: Pick<Run, "clock" | "origin" | "windowSeconds" | "windowOpenedAt">): {
  readonly wall: number;
  readonly windows: number;
} {
  const now = run.clock();
  return {
    wall: now - run.origin,
    windows: run.windowSeconds + (run.windowOpenedAt === null ? 0 : now - run.windowOpenedAt),
  };
}
