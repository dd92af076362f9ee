import { PeriodicEvalError } from "../../errors.ts";
import { isCount } from "../../internal/is-count.ts";
import type { Awaitable, Json } from "../../contracts/json.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { advance } from "../../schedule/crossings.ts";
import type { Progress } from "../../contracts/schedule.ts";
import { begin } from "./begin.ts";
import { learnStep } from "../budget/budget.ts";
import { close } from "./close.ts";
import { writeBeforeSave } from "../records/commit.ts";
import { callHooks, stateOf, tellError, tellFinished } from "./hooks.ts";
import { drive, wait, type Flow } from "./maybe-async.ts";
import { checkMaxSteps, checkSessionOptions } from "./options.ts";
import { askOwed, skipOwed } from "./interrupted.ts";
import { supersedeUnsettled } from "../records/resume.ts";
import { abortReason, createRun, runProgress, secondsOf, type Run } from "../run.ts";
import type { Control, Session, SessionOptions, SessionState, StepEnd } from "../../contracts/session.ts";
import { runWindow } from "../window/window.ts";

const nothing: Control = Object.freeze({ stop: null, save: null });
const nothingLater: Promise<Control> = Promise.resolve(nothing);

/**
 * Opens a session over a training loop. Nothing is read, checked against the model or measured before `begin`.
 * The caller must `close` it; `withSession` does.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function openSession(options: SessionOptions): Session {
  return open(options).session;
}

/** A session, and its `close` for who is known to call it from outside of hooks. */
function open(options: SessionOptions): { readonly session: Session; close(): Promise<void> } {
  checkSessionOptions(options);
  const run = createRun(options);
  let stage: "new" | "begun" | "ended" = "new";
  let closing: Promise<void> | null = null;
  /** The call that is being answered; a session answers one at a time. */
  let busyWith: string | null = null;
  /** Told when it is answered. */
  let onAnswered: (() => void) | null = null;
  let isInEpoch = false;
  /** Whether the loop has told that the step begins whose end is told next. */
  let isInStep = false;

  /** Runs a call to its end, without a turn of the event loop where it waits for nothing. */
  function call<T>(name: string, flow: () => Flow<T>): Awaitable<T> {
    if (busyWith !== null)
      throw misuse(
        name,
        `a call while ${busyWith} is not done`,
        "one call at a time",
        `Await session.${busyWith}().`,
      );
    if (closing !== null)
      throw misuse(name, "a call after close", "an open session", "Open another session.");
    busyWith = name;
    return drive(answered(flow()));
  }

  function* answered<T>(flow: Flow<T>): Flow<T> {
    try {
      const result = yield* flow;
      const { toThrow } = run;
      run.toThrow = null;
      if (toThrow !== null) throw toThrow;
      return result;
    } finally {
      busyWith = null;
      onAnswered?.();
    }
  }

  async function closeOnce(): Promise<void> {
    // The first call tells what went wrong.
    if (closing !== null) return closing.catch(() => undefined);
    closing = closeNow();
    return closing;
  }

  async function closeNow(): Promise<void> {
    if (busyWith !== null) {
      run.endMeasuring.abort(new Error("the session was closed"));
      await new Promise<void>((resolve) => (onAnswered = resolve));
    }
    await close(run, stage !== "new");
  }

  /** `lateFor`: the step that is told before the session began; null where none is. */
  function* beginFlow(maxSteps: number | null | undefined, lateFor: number | null): Flow<void> {
    if (stage !== "new") return;
    if (maxSteps !== undefined) checkMaxSteps("session.begin maxSteps", maxSteps);
    yield* wait(begin(run, maxSteps ?? null));
    stage = "begun";
    isInEpoch = run.progress.epoch % 1 !== 0;
    // A phase first seen in its middle has no start to measure.
    if (lateFor !== null && lateFor > 1 && run.progress.step === 0)
      run.progress = { ...run.progress, step: lateFor };
    yield* callHooks(run, "onTrainBegin");
    askOwed(run);
    if (lateFor === null) {
      yield* settleStep();
    } else if (lateFor > run.progress.step) {
      tellLate(run.queue, lateFor, "call session.begin() before training");
    }
  }

  /** The weights before the step are gone: what was asked for them is measured with the step being told. */
  function tellLate(asked: readonly { readonly id: string }[], step: number, fix: string): void {
    for (const { id } of asked) {
      const message = `"${id}" was asked for before step ${step} and is measured after it: ${fix}`;
      run.telling.warn(`session of phase "${run.phase}"`, message);
    }
  }

  /** Loops that call `stepEnd` alone have the hooks of others: the begin of a step is told with its end. */
  function* beginStepLate(step: number): Flow<void> {
    const asked = run.queue.length;
    yield* callHooks(run, "onStepBegin");
    tellLate(run.queue.slice(asked), step, "call session.stepBegin() before it");
  }

  function* epochBegin(): Flow<void> {
    if (isInEpoch) return;
    isInEpoch = true;
    yield* callHooks(run, "onEpochBegin");
  }

  function* stepEndFlow(at: StepEnd): Flow<Control> {
    yield* beginFlow(at.maxSteps, at.step ?? 1);
    if (stage === "ended")
      throw misuse(
        "stepEnd",
        "a step after the end",
        "steps between begin and end",
        "Open another session for another training.",
      );
    yield* epochBegin();
    const { epoch } = run.progress;
    const next = stepOf(run, at);
    if (!isInStep && next.step > run.progress.step) yield* beginStepLate(next.step);
    isInStep = false;
    if (run.owed.size > 0 && next.step > run.progress.step) yield* wait(skipOwed(run));
    moveTo(run, next);
    learnStep(run);
    if (run.finished.length > 0) yield* tellFinished(run);
    yield* callHooks(run, "onStepEnd", at.metrics);
    if (at.metrics !== undefined) yield* tellMetrics(at.metrics);
    if (Math.floor(run.progress.epoch) > Math.floor(epoch)) {
      yield* callHooks(run, "onEpochEnd");
      isInEpoch = false;
    }
    yield* settleStep();
    return controlOf(run);
  }

  function* tellMetrics(metrics: Readonly<Record<string, number>>): Flow<void> {
    yield* run.telling.train(metrics, runProgress(run));
    yield* callHooks(run, "onLog", metrics);
  }

  function* logFlow(metrics: Readonly<Record<string, number>>): Flow<void> {
    if (stage !== "begun")
      throw misuse(
        "log",
        stage === "new" ? "a call before begin" : "a call after the end",
        "metrics between begin and end",
        "Log them where training runs.",
      );
    yield* tellMetrics(metrics);
    yield* settleStep();
  }

  /** Measures what the hooks asked for and passes on what they reported. */
  function* settleStep(): Flow<void> {
    if (run.queue.length > 0) yield* wait(runWindow(run));
    for (let metrics = run.reported.shift(); metrics !== undefined; metrics = run.reported.shift()) {
      yield* run.telling.train(metrics, runProgress(run));
    }
    if (run.signal.aborted) run.stop ??= abortReason(run);
  }

  function* saveFlow(): Flow<SessionState> {
    if (stage === "new")
      throw misuse("save", "a call before begin", "a session that has begun", "Await session.begin() first.");
    yield* callHooks(run, "onSave");
    yield* settleStep();
    yield* wait(writeBeforeSave(run));
    const callbacks: Record<string, Json> = {};
    for (const callback of run.callbacks) {
      const state = yield* stateOf(run, callback);
      if (state !== undefined) callbacks[callback.id] = state;
    }
    const { phase, progress, runStepOffset, windowSeconds, owed } = run;
    return {
      phase,
      progress: { ...progress, ended: false },
      runStepOffset,
      callbacks,
      windowSeconds,
      ...(owed.size > 0 && { owed: Object.fromEntries(owed) }),
    };
  }

  function* endFlow(): Flow<void> {
    if (stage === "ended") return;
    if (stage === "new") {
      run.telling.warn(`session of phase "${run.phase}"`, "ended before it began: nothing was measured");
      stage = "ended";
      return;
    }
    // An aborted phase is not over: its end is measured where it is resumed and gets there.
    moveTo(run, { ...run.progress, elapsedSeconds: trainingSeconds(run), ended: !run.signal.aborted });
    yield* tellFinished(run);
    yield* callHooks(run, "onTrainEnd");
    yield* settleStep();
    stage = "ended";
    run.isMeasuring = false;
    // A resumed phase may come to those steps again.
    if (run.signal.aborted) return;
    yield* wait(skipOwed(run));
    yield* wait(supersedeUnsettled(run));
  }

  function* failFlow(error: unknown): Flow<void> {
    if (stage === "ended") return;
    const hadBegun = stage === "begun";
    stage = "ended";
    run.isMeasuring = false;
    run.queue = [];
    // Who began it is told by what is thrown.
    if (!hadBegun) return;
    run.telling.warn(
      `session of phase "${run.phase}"`,
      `training failed at step ${run.progress.step}: ${errorMessage(error)}`,
    );
    for (const callback of run.callbacks) yield* tellError(run, callback, error);
  }

  const session: Session = {
    phase: run.phase,
    get progress(): Progress {
      return run.progress;
    },
    get brokenReceipt(): string | null {
      return run.brokenReceipt;
    },
    async begin(known = {}) {
      return call("begin", function* () {
        yield* beginFlow(known.maxSteps, null);
        return controlOf(run);
      });
    },
    async stepBegin() {
      return call("stepBegin", function* () {
        yield* beginFlow(undefined, null);
        yield* epochBegin();
        isInStep = true;
        yield* callHooks(run, "onStepBegin");
        yield* settleStep();
      });
    },
    stepEnd(at = {}) {
      try {
        const control = call("stepEnd", () => stepEndFlow(at));
        return control === nothing ? nothingLater : Promise.resolve(control);
      } catch (error) {
        return Promise.reject(error);
      }
    },
    log: async (metrics) => call("log", () => logFlow(metrics)),
    save: async () => call("save", saveFlow),
    end: async () => call("end", endFlow),
    fail: async (error) => call("fail", () => failFlow(error)),
    async close() {
      if (run.hook !== null)
        throw misuse(
          "close",
          `a call inside ${run.hook}`,
          "a call outside of hooks, which it waits for",
          "End training with requestStop(reason), and close where the session was opened.",
        );
      return closeOnce();
    },
  };
  return { session, close: closeOnce };
}

/**
 * Runs a training inside a session: `end` where it returns (stopped early or aborted as well), `fail` where it throws,
 * `close` always. Where `maxSteps` is known the session has begun, and measured the start, when `train` is called; where
 * it is null, `train` begins it once it knows (`fitCallbacks` does), or the first `stepEnd` does.
 */
export async function withSession<T>(
  options: SessionOptions,
  train: (session: Session) => Promise<T>,
): Promise<T> {
  const { session, close: closeSession } = open(options);
  let result: T;
  try {
    if (options.maxSteps !== null) await session.begin();
    result = await train(session);
    await session.end();
  } catch (error) {
    // The first error is the one to tell: what goes wrong on the way out has been warned of.
    await session.fail(error).catch(() => undefined);
    await closeSession().catch(() => undefined);
    throw error;
  }
  await closeSession();
  return result;
}

function moveTo(run: Run, next: Progress): void {
  run.previous = run.progress;
  run.progress = advance(run.progress, next);
}

/** Never falls, whatever rounding does: a threshold in seconds would fire twice. */
function trainingSeconds(run: Run): number {
  const { wall, windows } = secondsOf(run);
  return Math.max(run.progress.elapsedSeconds, wall - windows);
}

function stepOf(run: Run, at: StepEnd): Progress {
  const { progress } = run;
  const { step = progress.step + 1, epoch = progress.epoch, maxSteps = null } = at;
  if (!isCount(step) || step < progress.step) {
    throw misuse(
      "stepEnd",
      `step ${step} after step ${progress.step}`,
      "whole numbers that do not fall",
      "Count completed optimizer steps of this phase.",
    );
  }
  if (!(Number.isFinite(epoch) && epoch >= progress.epoch)) {
    throw misuse(
      "stepEnd",
      `epoch ${epoch} after epoch ${progress.epoch}`,
      "finite numbers that do not fall",
      "Count completed passes over the data.",
    );
  }
  checkMaxSteps("session.stepEnd maxSteps", maxSteps);
  return {
    step,
    epoch,
    maxSteps: maxSteps ?? progress.maxSteps,
    elapsedSeconds: trainingSeconds(run),
    ended: false,
  };
}

/** A stop stays asked for; a save is asked for once. */
function controlOf(run: Run): Control {
  const { stop, save } = run;
  if (stop === null && save === null) return nothing;
  run.save = null;
  return { stop, save };
}

function misuse(method: string, got: string, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "config", where: `session.${method}`, got, expected, fix });
}
