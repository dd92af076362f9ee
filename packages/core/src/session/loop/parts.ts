import { pausedSeconds } from "@periodic-eval/store/platform";
import { secondsText } from "../../statistics/format.ts";
import { plainConsoleLogger } from "../../console/console-logger.ts";
import type { SessionOptions } from "@periodic-eval/contracts";
import { mathRandomGuard } from "../../random/streams.ts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { workingSeconds } from "@periodic-eval/store";
import { Governor } from "../budget/governor.ts";
import { PhaseClock } from "../budget/phase-clock.ts";
import { createRecords } from "../records/records.ts";
import { Timeouts, Disturbances, type WindowReporter } from "../window/guarded.ts";
import { Preflight } from "../window/preflight.ts";
import { LoopControl, PhaseProgress } from "./progress.ts";
import { Hooks } from "./hooks.ts";
import { SessionLog } from "./log-events.ts";
import { Requests } from "../records/requests.ts";

/** The owners of a session's state. Each changes only its own. */
export type SessionParts = ReturnType<typeof createParts>;

export function createParts(options: SessionOptions) {
  const { phase = "train", seed = "42", budget = {}, signal: given, now = isoNow } = options;
  const callbacks = [...options.callbacks];
  const control = new LoopControl(options);
  const log = new SessionLog(options.loggers ?? [plainConsoleLogger()]);
  const reportPauses = pauseReport(phase, log);
  const reporter = createReporter(log, control, reportPauses);
  const [measuring, grading] = [new AbortController(), new AbortController()];
  const outside = given === undefined ? [] : [given];
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
  const { model, trainedTexts = [] } = options;
  const preflight = new Preflight({ model, trainedTexts, callbacks, signal, timeouts, reporter });
  const disturbances = new Disturbances(reporter);
  const requests = new Requests();
  // The session's own guard is the outermost, so that the given guards may draw from `Math.random` too.
  const guards = [mathRandomGuard(), ...(options.guards ?? [])];
  const hooks = new Hooks({
    callbacks,
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
  const loop = { options, callbacks, log, control, clock, progress, requests, hooks, governor };
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
