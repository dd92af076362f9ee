// A session: requests (hooks) → window → outcome → records. `openSession` wires the owners of its state.
// Rooms import each other in one direction: loop → window → records, and budget below window.
import {
  type Awaitable,
  type Progress,
  type Control,
  type Session,
  type SessionOptions,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { inRunOrder, keyText } from "@periodic-eval/store";
import { isPromise } from "../../model/in-order.ts";
import type { SnapshotWriter } from "../records/snapshot-writer.ts";
import { misuse } from "./progress.ts";
import { noControl } from "./loop-control.ts";
import { SessionMethods } from "./session-methods.ts";
import { gradingKeys, waitForGrading } from "./wait-for-grading.ts";
import { checkSessionOptions } from "./options.ts";
import { createParts, type SessionParts } from "./begin.ts";

/** Most steps end in this value, so that they need not make a promise. */
const noControlLater: Promise<Control> = Promise.resolve(noControl);

/**
 * Opens a session over a training loop. Nothing is read, checked against the model or measured before `begin`. The caller must
 * `close` it; `withSession` does.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function openSession(options: SessionOptions): Session {
  return open(options).session;
}

/** Returns a session, and a `close` for callers outside of hooks. */
function open(options: SessionOptions): { readonly session: Session; close(): Promise<void> } {
  checkSessionOptions(options);
  const parts = createParts(options);
  const { progress, control, hooks } = parts;
  const methods = new SessionMethods(parts);
  const { run, close } = callsOf(parts, methods);
  const session: Session = {
    phase: progress.phase,
    get progress(): Progress {
      return progress.current;
    },
    get brokenReceipt(): string | null {
      return control.brokenReceipt;
    },
    get conditionStop() {
      return parts.stopWhen.stop;
    },
    get cleanStep() {
      return parts.stopWhen.cleanStep;
    },
    get lost(): Error | null {
      return parts.records.lost();
    },
    begin: async (known = {}) => run("begin", () => methods.begin(known.maxSteps)),
    stepBegin: async () => run("stepBegin", () => methods.stepBegin()),
    stepEnd(at = {}) {
      try {
        const answer = run("stepEnd", () => methods.stepEnd(at));
        return answer === noControl ? noControlLater : Promise.resolve(answer);
      } catch (error) {
        return Promise.reject(error);
      }
    },
    log: async (metrics, step) => run("log", () => methods.log(metrics, step)),
    save: async () => run("save", () => methods.save()),
    testConditions: async () => run("testConditions", () => methods.testConditions()),
    end: async () => run("end", () => methods.end()),
    fail: async (error) => run("fail", () => methods.fail(error)),
    async close() {
      if (hooks.running !== null)
        throw misuse(
          "close",
          `a call inside ${hooks.running}`,
          "a call outside of hooks, because close waits for them",
          "End training with requestStop(reason), and close the session where it was opened.",
        );
      return close();
    },
  };
  return { session, close };
}

/** The calls of a session's methods: one at a time, and none after `close`. */
function callsOf(parts: SessionParts, methods: SessionMethods) {
  let running: string | null = null;
  let onDone: (() => void) | null = null;
  let closing: Promise<void> | null = null;

  async function closeNow(): Promise<void> {
    if (running !== null) {
      parts.endMeasuring();
      await new Promise<void>((resolve) => (onDone = resolve));
    }
    await closeSession(parts, methods);
  }

  return {
    /** Runs a method to its end, without a turn of the event loop if it waits for nothing. */
    run<T>(method: string, work: () => Awaitable<T>): Awaitable<T> {
      if (running !== null)
        throw misuse(
          method,
          `a call while ${running} is running`,
          "one call at a time",
          `Await session.${running}().`,
        );
      if (closing !== null)
        throw misuse(method, "a call after close", "an open session", "Open another session.");
      running = method;
      let isWaiting = false;
      const end = () => {
        running = null;
        onDone?.();
      };
      const finish = (result: T) => {
        parts.control.throwError();
        return result;
      };
      try {
        const answer = work();
        isWaiting = isPromise(answer);
        return isPromise(answer) ? answer.then(finish).finally(end) : finish(answer);
      } finally {
        if (!isWaiting) end();
      }
    },
    /** Closes once, after the call that is running. Only the first call of `close` throws what went wrong. */
    async close(): Promise<void> {
      if (closing !== null) return closing.catch(() => undefined);
      closing = closeNow();
      return closing;
    },
  };
}

/**
 * Runs a training inside a session. Calls `end` when `train` returns (also if it was stopped early or aborted), `fail` when it
 * throws, and always `close`. If `maxSteps` is known, the session has begun, and measured the start, before `train` is called.
 * If it is null, `train` begins the session once it knows (`fitCallbacks` does), or the first `stepEnd` does.
 */
export async function withSession<T>(
  options: SessionOptions,
  train: (session: Session) => Promise<T>,
): Promise<T> {
  const { session, close } = open(options);
  let result: T;
  try {
    if (options.maxSteps !== null) await session.begin();
    result = await train(session);
    await session.end();
  } catch (error) {
    // The first error matters most; errors on the way out have been logged.
    await session.fail(error).catch(() => undefined);
    await close().catch(() => undefined);
    throw error;
  }
  await close();
  return result;
}

/**
 * Waits for grading, writes what is left to write, and closes callbacks, loggers and the store. A part that fails is logged,
 * and the others still run.
 *
 * @throws PeriodicEvalError `store` if snapshots could not be written or the run was lost; the error that `onFailure: "throw"` kept.
 */
async function closeSession(
  parts: SessionParts,
  { hasBegun, isFinished }: { readonly hasBegun: boolean; readonly isFinished: boolean },
): Promise<void> {
  const { callbacks, log, control, requests, hooks, records, progress, window } = parts;
  requests.close();
  const part = async (what: string, work: () => Promise<unknown>) => {
    try {
      await work();
    } catch (error) {
      log.warn("close", `${what}: ${errorMessage(error)}`);
    }
  };
  if (hasBegun) {
    await part("grading", () => drainGrading(parts));
    parts.reportPauses();
    await part("announcing snapshots", () => hooks.announceSnapshots());
    const ofPhase = inRunOrder(records.known.settled().filter(({ phase }) => phase === progress.phase));
    await part("changes by hooks", () => window.disturbances.recordRest(ofPhase.at(-1), records.writer));
    await part("unwritten snapshots", () => records.writer.writeAll());
    await part("announcing snapshots", () => hooks.announceSnapshots());
    await records.training.write();
  }
  if (hasBegun) await recordClosing(parts, isFinished && control.brokenReceipt === null);
  for (const callback of callbacks)
    await part(`callback "${callback.id}"`, () => hooks.closeCallback(callback));
  await log.close();
  await part("store", async () => records.store.close?.());
  parts.rejections.end();
  control.throwError();
  const lost = records.lost();
  if (lost !== null) throw lost;
  checkWritten(records.writer);
}

/** Records how the phase ended. If that fails, readers use the snapshots. */
async function recordClosing(
  { log, records, progress, stopWhen: { stop } }: SessionParts,
  finished: boolean,
): Promise<void> {
  const at = progress.inRun();
  const { phase, step, maxSteps } = at;
  const closing = { phase, step, maxSteps, finished, ...(stop !== null && { stop }) };
  const failed = await records.store.recordClosing?.(closing).catch(errorMessage);
  const lost = records.lost();
  const unwritten = records.writer.refused().length;
  if (failed !== undefined && lost === null)
    log.warn("close", `the end of the phase is not recorded: ${failed}`);
  await log.end({
    ...at,
    finished,
    ...(stop !== null && { stop }),
    ...(lost === null &&
      unwritten > 0 && {
        lost: `${unwritten} ${unwritten === 1 ? "snapshot" : "snapshots"} could not be written`,
      }),
    ...(lost !== null && { lost: PeriodicEvalError.is(lost) ? lost.got : lost.message }),
  });
}

async function drainGrading(parts: SessionParts): Promise<void> {
  const { log, records, endGrading } = parts;
  const isDone = await waitForGrading(parts);
  endGrading();
  if (isDone || records.lost() !== null) return;
  log.warn("close", `grading of ${gradingKeys(parts)} ran out of time; a resumed run finishes it`);
}

function checkWritten(writer: SnapshotWriter): void {
  const refused = writer.refused();
  if (refused.length === 0) return;
  const firstStep = Math.min(...refused.map(({ snapshot }) => snapshot.step));
  const cause = refused[0]!.error;
  // The fix of the cause is part of this error's fix.
  const why = PeriodicEvalError.is(cause) ? `${cause.where}: got ${cause.got}` : errorMessage(cause);
  const repair = PeriodicEvalError.is(cause) ? cause.fix : "Free space or fix the folder's permissions.";
  const repeat =
    firstStep === 0 ? "train the phase again" : `resume from a checkpoint before step ${firstStep}`;
  throw new PeriodicEvalError({
    code: "store",
    where: "session.close",
    got: `${refused.length} snapshots that could not be written (${refused.map(({ snapshot }) => keyText(snapshot)).join(", ")}): ${why}`,
    expected: "a store that can be written",
    fix: `${repair} Then ${repeat}: measurements after a checkpoint are repeated.`,
    cause,
  });
}
