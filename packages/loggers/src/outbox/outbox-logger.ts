import {
  PeriodicEvalError,
  type Json,
  type Logger,
  type RunProgress,
  type Snapshot,
} from "@periodic-eval/core";
import { errorMessage, quoteValue } from "@periodic-eval/core/internal";
import { join } from "node:path";
import pRetry from "p-retry";
import { checkPath } from "../check-path.ts";
import { snapshotScalars, trainScalars } from "../scalars.ts";
import { wallClock } from "../wall-clock.ts";
import type { Point } from "./journal-line.ts";
import { openJournal, type Changed, type Journal } from "./journal.ts";

/**
 * A server that keeps runs. What it throws is tried again, unless it is p-retry's `AbortError`: a wrong key, say, that no
 * waiting mends.
 */
export interface Destination {
  readonly name: string;
  /** Seconds between two sendings, for what gathers meanwhile to go as one. */
  readonly pauseSeconds: number;
  /**
   * Makes a run, or goes on with the one that was kept.
   *
   * @returns how many points it holds, where it tells.
   */
  open(kept: KeptRun, signal: AbortSignal): Promise<number | null>;
  /** Sends the first of these points, as many as go at once, and returns how many that were. */
  send(points: readonly Point[], signal: AbortSignal): Promise<number>;
  /** Where `isDone`, all is sent: the run is over, or rests until it is resumed. Else it lets go of what it holds, at once. */
  close(isDone: boolean): Promise<void>;
}

/** What the run's folder knows of the server's run. */
export interface KeptRun {
  /** What it is known by; null before there is one. */
  readonly run: Json | null;
  /** Points known to have been sent to it. */
  readonly sent: number;
  keep(run: Json): void;
}

export interface OutboxOptions {
  /** The run's folder; what is to be sent is kept in its `loggers/`. */
  readonly runDir: string;
  /** How long `close` waits for the server, in seconds; default 30. */
  readonly closeSeconds?: number;
  /** Milliseconds since 1970; for tests. */
  readonly now?: () => number;
}

export const outboxOptionNames = ["runDir", "closeSeconds", "now"] as const;

/**
 * A logger over a server. Training never waits for it: everything is written to `run_dir/loggers/<name>.jsonl`, and sent
 * from there in the background, in order, again and again until it was taken. What is not sent when the process ends is
 * sent when the run is resumed. What a resumed phase, or one begun anew, tells again is not sent twice; where it is another
 * value now it is sent, stands beside the earlier, which no server here forgets, and `close` says of which steps.
 */
export function outboxLogger(
  destination: Destination,
  { runDir, closeSeconds = 30, now = wallClock }: OutboxOptions,
): Logger {
  const { name } = destination;
  checkPath(`${name}Logger runDir`, runDir);
  checkSeconds(`${name}Logger closeSeconds`, closeSeconds);
  let open: { readonly journal: Journal; readonly sending: Sending } | null = null;
  /** Why the file cannot be read: not found out again at each step. */
  let broken: { readonly error: unknown } | null = null;

  function opened() {
    if (broken !== null) throw broken.error;
    try {
      if (open === null) {
        const journal = openJournal(join(runDir, "loggers", `${name}.jsonl`));
        open = { journal, sending: startSending(destination, journal) };
      }
      return open;
    } catch (error) {
      broken = { error };
      throw error;
    }
  }

  function add({ journal, sending }: ReturnType<typeof opened>, point: Omit<Point, "time">): void {
    journal.add({ ...point, time: now() });
    sending.wake();
  }

  function addLook(to: ReturnType<typeof opened>, snapshot: Snapshot): void {
    const values = snapshotScalars(snapshot);
    if (Object.keys(values).length > 0)
      add(to, { phase: snapshot.phase, runStep: snapshot.run_step, values, of: "snapshot" });
  }

  return {
    name,
    // Closing keeps its own time; what else it does is quick.
    patienceSeconds: closeSeconds + 60,
    begin({ phase, resumed, runStep, standing }) {
      const to = opened();
      to.journal.begin(phase, resumed ? runStep : 0);
      for (const snapshot of standing) addLook(to, snapshot);
    },
    train(metrics, { phase, runStep }: RunProgress) {
      const to = opened();
      add(to, { phase, runStep, values: trainScalars(metrics), of: "training" });
      to.sending.throwTrouble();
    },
    snapshot(snapshot) {
      const to = opened();
      addLook(to, snapshot);
      to.sending.throwTrouble();
    },
    async close() {
      const unreadable = broken;
      broken = null;
      if (unreadable !== null)
        throw new Error(`nothing was kept or sent: ${errorMessage(unreadable.error)}`, {
          cause: unreadable.error,
        });
      if (open === null) return;
      const { journal, sending } = open;
      open = null;
      try {
        await sending.end(closeSeconds);
      } finally {
        journal.close();
      }
      const last = [unsentText(journal, sending, closeSeconds), changedText(journal.changed, name)];
      if (last.some((text) => text !== null)) throw new Error(last.filter(Boolean).join("; "));
    },
  };
}

function unsentText({ unsent, sent, path }: Journal, { lastError }: Sending, seconds: number): string | null {
  const { length } = unsent;
  if (length === 0) return null;
  const why = lastError === null ? `${seconds} s were not enough` : errorText(lastError);
  return `${length} of ${sent + length} records were not sent (${why}); they are kept in ${path} and sent when the run is resumed`;
}

function changedText(changed: Changed | null, name: string): string | null {
  if (changed === null) return null;
  const { values, firstRunStep, lastRunStep } = changed;
  return `values that changed after they were logged: ${values}, of run steps ${firstRunStep} to ${lastRunStep}; ${name} cannot forget and holds both, what stands now as the later`;
}

function checkSeconds(where: string, seconds: unknown): void {
  if (typeof seconds === "number" && Number.isFinite(seconds) && seconds >= 0) return;
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: quoteValue(seconds),
    expected: "seconds, 0 or more",
    fix: "Correct the option, or leave it out for its default.",
  });
}

/** With what the operating system said of a connection that failed. */
function errorText(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? `${errorMessage(error)} (${errorMessage(cause)})` : errorMessage(error);
}

interface Sending {
  /** There is something to send. */
  wake(): void;
  /** Throws what went wrong since it was last asked; where sending is over, each time. */
  throwTrouble(): void;
  /** Sends what is left, for so long at most. */
  end(seconds: number): Promise<void>;
  readonly lastError: unknown;
}

/** Attempts before a server that does not answer is told of; it is tried again after that too. */
const attemptsBeforeTelling = 3;

function startSending(destination: Destination, journal: Journal): Sending {
  const abort = new AbortController();
  const { signal } = abort;
  let isEnding = false;
  let wake = () => {};
  let fatal: { readonly error: unknown } | null = null;
  let trouble: { readonly error: unknown } | null = null;
  let lastError: unknown = null;

  const untilTaken = <T>(work: () => Promise<T>): Promise<T> =>
    pRetry(work, {
      retries: Number.POSITIVE_INFINITY,
      minTimeout: 500,
      maxTimeout: 30_000,
      unref: true,
      signal,
      onFailedAttempt({ error, attemptNumber }) {
        lastError = error;
        if (attemptNumber === attemptsBeforeTelling) trouble = { error };
      },
    });

  /** Until there is something to do, or for so long; ends at once where the logger closes. */
  const rest = (seconds: number | null) =>
    new Promise<void>((resolve) => {
      if (isEnding) resolve();
      wake = seconds === null ? resolve : () => isEnding && resolve();
      if (seconds !== null) setTimeout(resolve, 1000 * seconds).unref();
    });

  async function send(): Promise<void> {
    const received = await untilTaken(() => destination.open(journal, signal));
    // The process may have died between sending and writing down that it was sent.
    const arrived = Math.min((received ?? 0) - journal.sent, journal.unsent.length);
    if (arrived > 0) journal.tick(arrived);
    for (;;) {
      if (journal.unsent.length === 0) {
        if (isEnding) return;
        await rest(null);
      } else {
        journal.tick(await untilTaken(() => destination.send(journal.unsent, signal)));
        lastError = null;
        await rest(destination.pauseSeconds);
      }
    }
  }

  const running = send().catch((error: unknown) => {
    lastError = error;
    if (!signal.aborted) fatal = { error };
  });
  return {
    wake: () => wake(),
    throwTrouble() {
      const told = fatal ?? trouble;
      trouble = null;
      if (told === null) return;
      const then = told === fatal ? "no more is sent" : "it is tried again and again";
      throw new Error(`${errorText(told.error)}; ${then}, and all is kept in ${journal.path}`, {
        cause: told.error,
      });
    },
    async end(seconds) {
      isEnding = true;
      wake();
      let timer: ReturnType<typeof setTimeout> | undefined;
      const timeUp = new Promise<"time is up">((resolve) => {
        // setTimeout holds no more than 2³¹ − 1 milliseconds.
        timer = setTimeout(() => resolve("time is up"), Math.min(1000 * seconds, 2 ** 31 - 1));
      });
      const finish = running.then(() =>
        journal.unsent.length === 0 ? untilTaken(() => destination.close(true)) : destination.close(false),
      );
      // Where finishing fails too: what still ticks keeps the process from its end.
      const outcome = await Promise.race([finish, timeUp]).finally(() => clearTimeout(timer));
      if (outcome !== "time is up") return;
      abort.abort(new Error(`time is up after ${seconds} s`));
      // What it still does is done for nobody.
      void destination.close(false).catch(() => undefined);
    },
    get lastError() {
      return lastError;
    },
  };
}
