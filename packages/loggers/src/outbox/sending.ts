import { errorMessage } from "@periodic-eval/contracts/options";
import type { Json } from "@periodic-eval/core";
import { resolvesWithin } from "@periodic-eval/store";
import pRetry from "p-retry";
import type { Point, Journal } from "./journal.ts";

/**
 * A server that stores runs. Its errors are retried, except p-retry's `AbortError`, which is permanent (a wrong API key, for
 * example).
 */
export interface Destination {
  readonly name: string;
  /** Seconds between two requests, in which points accumulate to be sent as one. */
  readonly pauseSeconds: number;
  /**
   * Creates a run, or reopens `stored.run`.
   *
   * @returns The number of points in it, or null if the server does not report that.
   */
  open(stored: StoredRun, signal: AbortSignal): Promise<number | null>;
  /** Sends the first of these points, as many as fit one request, and returns their number. */
  send(points: readonly Point[], signal: AbortSignal): Promise<number>;
  /** Closes the run if `isDone`, when everything is sent. Otherwise releases its resources at once. */
  close(isDone: boolean): Promise<void>;
}

/** The server's run, as stored in the run's folder. */
export interface StoredRun {
  /** Identifies the run; null before it exists. */
  readonly run: Json | null;
  /** Number of points known to have been sent. */
  readonly sent: number;
  storeRun(run: Json): void;
}

/** Sends the points of a journal in the background. */
export interface Sending {
  /** Signals that there are points to send. */
  wake(): void;
  /** Throws an error that occurred since the last call. A permanent error is thrown by every call. */
  throwFailure(): void;
  /** Sends the remaining points, for at most this time. */
  end(seconds: number): Promise<void>;
  readonly lastError: unknown;
}

/** Number of failed attempts before a warning. Retries continue after it. */
const attemptsBeforeWarning = 3;

/** Failures of sending, for `throwFailure` and `lastError`. */
interface Failures {
  /** A permanent error, which has stopped sending. */
  fatal: { readonly error: unknown } | null;
  /** An error of repeated attempts that `throwFailure` has not thrown yet. */
  unreported: { readonly error: unknown } | null;
  lastError: unknown;
}

export function startSending(destination: Destination, journal: Journal): Sending {
  const abort = new AbortController();
  const { signal } = abort;
  const failures: Failures = { fatal: null, unreported: null, lastError: null };
  let isEnding = false;
  let wake = () => {};

  const retry = <T>(work: () => Promise<T>): Promise<T> => untilSent(work, signal, failures);

  /** Waits for `wake`, or for this time. Returns at once when the logger closes. */
  const pause = (seconds: number | null) =>
    new Promise<void>((resolve) => {
      if (isEnding) resolve();
      wake = seconds === null ? resolve : () => isEnding && resolve();
      if (seconds !== null) setTimeout(resolve, 1000 * seconds).unref();
    });

  async function send(): Promise<void> {
    const received = await retry(() => destination.open(journal, signal));
    journal.sync();
    // The last process may have died after it sent points and before it recorded that.
    const arrived = Math.min((received ?? 0) - journal.sent, journal.unsent.length);
    if (arrived > 0) journal.markSent(arrived);
    for (;;) {
      if (journal.unsent.length === 0) {
        if (isEnding) return;
        await pause(null);
      } else {
        const points = [...journal.unsent];
        journal.markSent(
          await retry(async () => {
            journal.sync();
            return destination.send(points, signal);
          }),
        );
        failures.lastError = null;
        await pause(destination.pauseSeconds);
      }
    }
  }

  const running = send().catch((error: unknown) => {
    failures.lastError = error;
    if (!signal.aborted) failures.fatal = { error };
  });
  return {
    wake: () => wake(),
    throwFailure: () => throwFailure(failures, journal.path),
    async end(seconds) {
      isEnding = true;
      wake();
      const finish = running.then(() =>
        journal.unsent.length === 0 ? retry(() => destination.close(true)) : destination.close(false),
      );
      if (await resolvesWithin(finish, seconds)) return;
      abort.abort(new Error(`timeout after ${seconds} s`));
      // Do not wait for `close`: the timeout has passed.
      void destination.close(false).catch(() => undefined);
    },
    get lastError() {
      return failures.lastError;
    },
  };
}

/** Repeats work until it succeeds, without limit, and records what failed. */
const untilSent = <T>(work: () => Promise<T>, signal: AbortSignal, failures: Failures): Promise<T> =>
  pRetry(work, {
    retries: Number.POSITIVE_INFINITY,
    minTimeout: 500,
    maxTimeout: 30_000,
    unref: true,
    signal,
    onFailedAttempt({ error, attemptNumber }) {
      failures.lastError = error;
      if (attemptNumber === attemptsBeforeWarning) failures.unreported = { error };
    },
  });

function throwFailure(failures: Failures, path: string): void {
  const { fatal, unreported } = failures;
  const thrown = fatal ?? unreported;
  failures.unreported = null;
  if (thrown === null) return;
  const outlook = thrown === fatal ? "sending has stopped" : "sending will be retried";
  throw new Error(`${describeError(thrown.error)}; ${outlook}, and all data is kept in ${path}`, {
    cause: thrown.error,
  });
}

/** Returns an error's message together with that of its cause, which names the operating system's error. */
export function describeError(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? `${errorMessage(error)} (${errorMessage(cause)})` : errorMessage(error);
}
