// A promise that user code leaves behind and that rejects, and a timer or microtask that throws, end a Node process. While callbacks,
// evaluations and loggers run, Node carries along on whose behalf, so that such an error becomes a warning of its owner. This
// costs every await of the process up to a tenth of a microsecond, so it begins with the first code that is not ours.
import type { TrainerCallback } from "../../contracts/callback.ts";
import type { AnyEvaluation } from "../../contracts/evaluation.ts";
import { divertMathRandom, isMathRandomReplaced } from "../../guard/randomness.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { isOwnCode } from "../../internal/own-code.ts";
import { removeRethrowingListeners } from "../../internal/rethrowing-listeners.ts";
import { namedStream } from "../../random/streams.ts";
import type { Reporter } from "./reporter.ts";

/** On whose behalf code runs. Receives the errors of work that nothing awaits, and a description of the work. */
export interface OnLeftBehind {
  (error: unknown, what: string): void;
  /** Names the callback or logger: `callback "em"`. */
  readonly where?: string;
  /** The session that called it. */
  readonly of?: Reporter | undefined;
}

interface Owners {
  run<A, T>(owner: OnLeftBehind, work: (given: A) => T, given: A): T;
  current(): OnLeftBehind | undefined;
  bind(work: () => void): () => void;
}

/** One for all copies of this package: each of several listeners would take another for the application's own. */
const shared = Symbol.for("periodic-eval.left-behind");

/**
 * Runs user code. Errors of promises, timers, microtasks and streams that it leaves behind go to `owner`, in Node; browsers log them.
 * Outside of windows and hooks, such work draws from a separate `Math.random`, so that it does not use up the training's numbers.
 */
export function runOwned<A, T>(owner: OnLeftBehind, work: (given: A) => T, given: A): T {
  return owners === null ? work(given) : owners.run(owner, work, given);
}

/** Runs user code as `runOwned` does, unless the current code already has an owner, such as a callback of a session. */
export function runOwnedOnce<T>(owner: OnLeftBehind, work: () => T): T {
  return owners?.current() === undefined ? runOwned(owner, work, undefined) : work();
}

/**
 * Returns the name of the callback or logger of a session on whose behalf the code that asks is running, be it in a timer or a
 * promise; null for other code, and in browsers.
 */
export function currentOwner(session: Reporter): string | null {
  const owner = owners?.current();
  return owner?.of === session ? (owner.where ?? null) : null;
}

/** Returns a function that runs `work` on behalf of the code that is running now. */
export function bindOwner(work: () => void): () => void {
  return owners === null ? work : owners.bind(work);
}

const owners = openOwners();

function openOwners(): Owners | null {
  const registry = globalThis as { [shared]?: Owners };
  // Not an import: this module also runs in browsers.
  const hooks = globalThis.process?.getBuiltinModule?.("node:async_hooks");
  if (hooks !== undefined) registry[shared] ??= listening(new hooks.AsyncLocalStorage<OnLeftBehind>());
  return registry[shared] ?? null;
}

/** Listens from the first run on, for as long as the process lives: a promise may reject after its session was closed. */
function listening(storage: Pick<Owners, "run"> & { getStore(): OnLeftBehind | undefined }): Owners {
  let isListening = false;
  /** The functions that `reportMicrotasks` put in place: test runners put the earlier one back. */
  const reporting = new WeakSet<typeof globalThis.queueMicrotask>();
  let listeners = 0;
  const countListeners = () =>
    process.listenerCount("unhandledRejection") + process.listenerCount("uncaughtException");
  const stream = namedStream("left behind");
  const streamOf = () => (isMathRandomReplaced() || storage.getStore() === undefined ? undefined : stream);
  const refused = new WeakMap<Reporter, Set<string>>();
  const warnOfRefusal = () => {
    const { of: session, where = "" } = storage.getStore() ?? {};
    if (session === undefined || refused.get(session)?.has(where) === true) return;
    refused.set(session, new Set(refused.get(session)).add(where));
    session.warn(
      where,
      "tried to replace Math.random while training uses it, which is ignored. " +
        "Use a separate random generator to get the same numbers each time.",
    );
  };
  const report = (error: unknown) => {
    const owner = storage.getStore();
    if (owner !== undefined) return owner(error, "a promise that it left behind was rejected");
    // Node ends the process if nothing listens. So does this, for a rejection that is not of a callback.
    if (process.listenerCount("unhandledRejection") === 1) throw error;
  };
  const reportThrown = (error: unknown, origin: string) => {
    const owner = origin === "uncaughtException" ? storage.getStore() : undefined;
    if (owner !== undefined) return owner(error, "a timer, event or stream that it left behind threw");
    if (process.listenerCount("uncaughtException") > 1) return;
    // Without a listener, Node ends the process as it always does.
    process.off("uncaughtException", reportThrown);
    process.nextTick(() => {
      throw error;
    });
  };
  return {
    run(owner, work, given) {
      // Again each time, because user code may have removed the listeners or replaced Math.random.
      if (!isListening || process.listenerCount("unhandledRejection") === 0)
        process.on("unhandledRejection", report);
      if (!isListening || process.listenerCount("uncaughtException") === 0)
        process.on("uncaughtException", reportThrown);
      if (!reporting.has(globalThis.queueMicrotask)) reporting.add(reportMicrotasks(storage));
      isListening = true;
      // A program may start the wasm backend at any time.
      if (countListeners() !== listeners) {
        removeRethrowingListeners();
        listeners = countListeners();
      }
      divertMathRandom(streamOf, warnOfRefusal);
      return storage.run(owner, work, given);
    },
    current: () => storage.getStore(),
    bind(work) {
      const owner = storage.getStore();
      return owner === undefined ? work : () => storage.run(owner, work, undefined);
    },
  };
}

/**
 * Replaces `queueMicrotask` by one that gives errors to their owners: Node reports such an error after it has lost on whose behalf
 * the code ran.
 */
function reportMicrotasks(storage: {
  getStore(): OnLeftBehind | undefined;
}): typeof globalThis.queueMicrotask {
  const earlier = globalThis.queueMicrotask;
  return (globalThis.queueMicrotask = function queueMicrotask(work) {
    const owner = storage.getStore();
    if (owner === undefined || typeof work !== "function") return earlier(work);
    earlier(() => {
      try {
        work();
      } catch (error) {
        owner(error, "a microtask that it left behind threw");
      }
    });
  });
}

/** Names a callback in warnings and records. `currentOwner` returns the same name. */
export const ownerNameOf = ({ id }: TrainerCallback): string => `callback "${id}"`;

/** Runs code of an evaluation that a callback requests. */
export function ownedBy<T>(
  callback: TrainerCallback,
  evaluation: AnyEvaluation,
  reporter: Reporter,
  work: () => T,
): T {
  if (isOwnCode(evaluation)) return work();
  return runOwned(ownerOf(ownerNameOf(callback), reporter), work, undefined);
}

export function ownerOf(where: string, session: Reporter): OnLeftBehind {
  const report = (error: unknown, what: string) => {
    session.warn(where, `${what}: ${errorMessage(error)}`);
    session.fail(error);
  };
  return Object.assign(report, { where, of: session });
}
