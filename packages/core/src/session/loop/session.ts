// A session: requests (hooks) → window → outcome → records. `openSession` wires the owners of its state.
// Rooms import each other in one direction: loop → window → records, and budget below window.
import type { Awaitable, Progress, Control, Session, SessionOptions } from "@periodic-eval/contracts";
import { isPromise } from "../../model/in-order.ts";
import { closeSession } from "./close.ts";
import { misuse, noControl } from "./control.ts";
import { SessionMethods } from "./methods.ts";
import { checkSessionOptions } from "./options.ts";
import { createParts, type SessionParts } from "./parts.ts";

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
    log: async (metrics) => run("log", () => methods.log(metrics)),
    save: async () => run("save", () => methods.save()),
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
