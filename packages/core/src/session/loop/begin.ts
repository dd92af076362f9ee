import type {
  SessionOptions,
  TrainerCallback,
  Progress,
  SessionState,
  PhaseClosing,
  Snapshot,
} from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { workingSeconds, keysOfSteps, keyText, isOfCheckpoint } from "@periodic-eval/store";
import { pausedSeconds } from "@periodic-eval/store/platform";
import { plainConsoleLogger } from "../../console/console-logger.ts";
import { mathRandomGuard, withSeededRandom } from "../../random/guards.ts";
import { seedOf } from "../../random/streams.ts";
import { secondsText } from "../../statistics/format.ts";
import { Governor } from "../budget/governor.ts";
import { PhaseClock } from "../budget/phase-clock.ts";
import { createRecords, type SessionRecords } from "../records/records.ts";
import { Requests } from "../records/requests.ts";
import { replaceDamaged, finishGrading, isUngraded } from "../records/resume.ts";
import { openBaseline, checkFinished } from "../window/check-run.ts";
import { Disturbances, type WindowReporter } from "../window/disturbances.ts";
import { Timeouts } from "../window/timeouts.ts";
import { Preflight } from "../window/preflight.ts";
import { Hooks } from "./hooks.ts";
import { SessionLog } from "./log-events.ts";
import { PhaseProgress } from "./progress.ts";
import { StopWhen } from "./stop-when.ts";
import { LoopControl } from "./loop-control.ts";

/** The owners of a session's state. Each changes only its own. */
export type SessionParts = ReturnType<typeof createParts>;

export function createParts(options: SessionOptions) {
  const { phase = "train", seed = "42", budget = {}, signal: outer, now = isoNow } = options;
  const callbacks = [...options.callbacks];
  const log = new SessionLog(options.loggers ?? [plainConsoleLogger()]);
  const control = new LoopControl(options, (message) =>
    log.event({ kind: "stop", step: progress.current.step, message }),
  );
  const reportPauses = pauseReport(phase, log);
  const reporter = createReporter(log, control, reportPauses);
  const [measuring, grading] = [new AbortController(), new AbortController()];
  const outside = outer === undefined ? [] : [outer];
  const signal = AbortSignal.any([...outside, measuring.signal]);
  const gradingSignal = AbortSignal.any([...outside, grading.signal]);
  const clock = new PhaseClock(options.clock ?? workingSeconds);
  const start = options.resume?.progress ?? {
    step: 0,
    maxSteps: options.maxSteps,
    epoch: 0,
    elapsedSeconds: 0,
    ended: false,
  };
  const progress = new PhaseProgress(phase, seed, now, clock, start);
  const records = createRecords({
    ...options,
    phase,
    seed,
    clock: () => clock.now(),
    gradingSignal,
    reporter,
  });
  const governor = new Governor(budget, callbacks, clock);
  const timeouts = new Timeouts(options.patienceSeconds ?? 600, reporter);
  const preflight = new Preflight({ ...options, callbacks, signal, timeouts, reporter });
  const disturbances = new Disturbances(reporter);
  const requests = new Requests();
  const { guards: custom = [] } = options;
  // The built-in guard is the outermost, so that custom guards may draw from `Math.random` too.
  const builtIn = custom.some(({ isElsewhere }) => isElsewhere) ? [] : [mathRandomGuard()];
  const guards = [...builtIn, ...custom];
  const { stopWhen: conditions = [] } = options;
  const stopWhen = new StopWhen({ conditions, callbacks, progress, control, records, log });
  const hooks = new Hooks({
    callbacks,
    stopWhen,
    guards: guards.filter(({ around }) => around === "hooks"),
    signal,
    log,
    control,
    progress,
    requests,
    writer: records.writer,
    disturbances,
    timeouts,
  });
  const measuringParts = { options, guards, signal, clock, governor, preflight, disturbances, reporter };
  const window = { ...measuringParts, timeouts, records };
  const loop = { options, callbacks, log, control, stopWhen, clock, progress, requests, hooks, governor };
  return {
    ...loop,
    records,
    preflight,
    window,
    reportPauses,
    rejections: rejectionReport(reporter),
    signal,
    /** Ends the measurement that is running, as an abort does. */
    endMeasuring: () => measuring.abort(new Error("the session was closed")),
    endGrading: () => grading.abort(new Error("the session is closed")),
  };
}

const isoNow = () => new Date().toISOString();

/** Returns a function that reports the pauses of the process since its last call. Pauses before this session belong to no phase. */
function pauseReport(phase: string, log: SessionLog): () => void {
  let reported = pausedSeconds();
  return () => {
    const paused = pausedSeconds();
    if (paused === reported) return;
    const message = `paused for ${secondsText(paused - reported)}, which counts neither as training nor as measuring`;
    reported = paused;
    log.warn(`session of phase "${phase}"`, message);
  };
}

function createReporter(log: SessionLog, control: LoopControl, reportPauses: () => void): WindowReporter {
  return {
    warn: (where, message, failed) => log.warn(where, message, failed),
    fail: (error) => control.fail(error),
    graded: ({ id, step }) => log.event({ kind: "graded", id, step }),
    measuring(event) {
      reportPauses();
      log.event({ kind: "measuring", ...event });
    },
    plan: (message) => log.event({ kind: "plan", message }),
    receiptBroken: (message, makeError) => control.receiptBroken(message, makeError),
  };
}

/**
 * Reports rejections that nobody handles as warnings, from `start` to `end`. Without a listener they end a Node process, and a
 * callback may leave a promise behind. Browsers log them.
 */
function rejectionReport(reporter: WindowReporter): { start(): void; end(): void } {
  const reported = new Set<string>();
  const report = (error: unknown) => {
    reporter.fail(error);
    const reason = errorMessage(error);
    if (reported.has(reason)) return;
    reported.add(reason);
    const message = `a promise that nobody handles was rejected (reported once): ${reason}`;
    reporter.warn("session", message);
  };
  const end = () => void globalThis.process?.off?.("unhandledRejection", report);
  const start = () => {
    // A `begin` that threw may be called again.
    end();
    globalThis.process?.on?.("unhandledRejection", report);
  };
  return { start, end };
}

/**
 * Opens the store, reads what an earlier session left, restores the callbacks and checks everything that may be requested.
 *
 * @throws PeriodicEvalError before step 1: `store` if the run cannot be written, `model` or `data` if an evaluation lacks
 * something, `config` for a state that does not fit.
 * @returns Whether the phase was finished before: nothing is left to train or measure.
 */
export async function beginSession(parts: SessionParts, maxSteps: number | null): Promise<boolean> {
  const { options, callbacks, clock, progress, governor, records, preflight, hooks } = parts;
  const openedAt = clock.now();
  parts.rejections.start();
  const check = () => ({
    records,
    callbacks: callbacks.filter(({ asks = [] }) => asks.every((ask) => preflight.whyDisabled(ask) === null)),
    preflight,
    phase,
    seed,
    at: progress.current,
  });
  const { resume, runStepOffset } = options;
  // A state of step 0 only says that nothing was trained: the phase begins.
  const resumed = resume !== undefined && resume.progress.step > 0 ? resume : null;
  await records.store.open?.();
  const { phase, seed } = progress;
  const stored = await records.store.list();
  const { remaining, requested } = await replaceDamaged(records, stored, {
    phase,
    resumed,
    callbacks,
  });
  const interrupted = { ...requested, ...resumed?.interrupted };
  records.known.load(remaining, resumed?.progress.step ?? null, interrupted);
  records.interrupted.load(interrupted);
  governor.learnSnapshots(records.known.settled(), phase);
  const offset = resume?.runStepOffset ?? runStepOffset ?? stepsBefore(remaining, phase);
  progress.begin(maxSteps ?? options.maxSteps ?? resumed?.progress.maxSteps ?? null, offset, resumed);
  const at = progress.current;
  await records.training.begin(at.step);
  const standing = records.known.settled().filter((snapshot) => snapshot.phase === phase);
  const measured = standing.reduce((sum, { timing }) => sum + timing.total_seconds, 0);
  // Measurements after the checkpoint was saved, as those at the end, stand too.
  clock.start(openedAt, at.elapsedSeconds, Math.max(resumed?.windowSeconds ?? 0, measured));
  // `items` and provenance of evaluations must not draw from training's random numbers.
  await withSeededRandom(seedOf(seed, phase, "begin"), async () => {
    await hooks.restore(resume?.callbacks ?? {});
    await preflight.run(at);
    await openBaseline(check());
  });
  const closings = (await records.store.closings?.()) ?? [];
  const closing = closings.findLast((entry) => entry.phase === phase);
  parts.stopWhen.resume(closing?.stop);
  // A phase goes on if the condition that ended it is gone.
  const isFreed = closing?.stop !== undefined && parts.stopWhen.stop === null;
  const isOver =
    resumed !== null && !isFreed && isFinished(standing, closing, at) && records.interrupted.isEmpty;
  await withSeededRandom(seedOf(seed, phase, "begin"), async () => {
    if (isOver) await checkFinished(check(), closings);
    // The last work that writes: a refused run stays as it was.
    if (records.known.settled().some(isUngraded)) await finishGrading(records, callbacks);
  });
  await announceBegin(parts, { resumed: resumed !== null, isOver, closing });
  if (resumed !== null && !isOver) reportMissed(records, resumed);
  clock.countSince(openedAt);
  return isOver;
}

/** Reports to `onSnapshot` what was measured or graded after the states of the callbacks were read, but belongs to this training. */
function reportMissed(
  { known, writer }: SessionRecords,
  { phase, snapshots, unreported }: SessionState,
): void {
  // A session beside training does not resume with them.
  if (snapshots === undefined) return;
  const textsOf = (steps: typeof unreported = {}) => new Set(keysOfSteps(steps).map(keyText));
  const [had, missed] = [textsOf(snapshots), textsOf(unreported)];
  for (const snapshot of known.settled()) {
    const isMissed =
      missed.has(keyText(snapshot)) || (snapshot.phase === phase && !had.has(keyText(snapshot)));
    // This session may have graded it already.
    if (isMissed && snapshot.status !== "grading" && !writer.isAnnounced(snapshot))
      writer.announce(snapshot, { isLogged: true });
  }
}

/** Whether a phase that resumes at this point has nothing left to train or measure. */
function isFinished(
  standing: readonly Snapshot[],
  closing: PhaseClosing | undefined,
  { step, maxSteps }: Progress,
): boolean {
  const last = standing.filter((snapshot) => snapshot.step === step);
  if (last.some(({ status }) => status !== "complete" && status !== "grading")) return false;
  if (closing?.step === step) return closing.finished && closing.maxSteps === maxSteps;
  return step === maxSteps && last.some(({ pct, crossed }) => pct === 100 || crossed.includes("end"));
}

/** Returns the last step that an earlier training of this phase reached, if this one repeats it; null otherwise. */
function reachedBefore({ known }: SessionRecords, closing: PhaseClosing | undefined): number | null {
  const left = known.unsettled();
  // Checkpoints of another process are read again, not trained again.
  if (left.some(isOfCheckpoint)) return null;
  const reached = Math.max(closing?.step ?? 0, ...left.map(({ step }) => step));
  return left.length > 0 && reached > 0 ? reached : null;
}

function announceBegin(
  { options, callbacks, log, progress, records }: SessionParts,
  begun: { readonly resumed: boolean; readonly isOver: boolean; readonly closing: PhaseClosing | undefined },
) {
  const { resumed, isOver, closing } = begun;
  const reached = resumed ? null : reachedBefore(records, closing);
  const again = reached === null ? {} : { startsAgainAfter: reached };
  const isElsewhere = options.guards?.some((guard) => guard.isElsewhere) === true;
  const flags = { ...(isOver && { alreadyFinished: true as const }), ...(isElsewhere && { isElsewhere }) };
  const standing = records.known.settled().filter(({ status }) => status !== "grading");
  const folder = typeof options.run === "string" ? { run: options.run } : {};
  const nothing = callbacks.some(canMeasure) ? {} : { measuresNothing: true as const };
  return log.begin({ ...progress.inRun(), resumed, standing, ...folder, ...nothing, ...again, ...flags });
}

/** Whether a callback may request measurements: only one that lists no evaluation, or an empty schedule, certainly does not. */
const canMeasure = ({ asks, triggers }: TrainerCallback): boolean =>
  asks?.length !== 0 && triggers?.length !== 0;

/** Returns the steps of the phases before this one, or of all phases if this one is new. */
function stepsBefore(snapshots: readonly Snapshot[], phase: string): number {
  const index = snapshots.findIndex((snapshot) => snapshot.phase === phase);
  const before = index === -1 ? snapshots : snapshots.slice(0, index);
  return before.reduce((most, { run_step }) => Math.max(most, run_step), 0);
}
