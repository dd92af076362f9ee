import { errorMessage } from "../../internal/error-message.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { drive, isPromise, noFlow, wait, type Flow } from "./maybe-async.ts";
import type { Logger, PhaseBegin, RunProgress, SessionEvent } from "../../contracts/session.ts";

type Told = "begin" | "train" | "snapshot" | "close";

/** How long a call of a logger may take that does not name its own `patienceSeconds`. */
const loggerPatienceSeconds = 60;

/** Loggers that did not answer in time: nobody waits for them again, in any session. Only their `close` is still called. */
const unanswering = new WeakSet<Logger>();

/** All loggers as one. A logger that throws, or does not answer, is told of once and never stops training. */
export interface Telling {
  event(event: SessionEvent): void;
  warn(where: string, message: string): void;
  begin(at: PhaseBegin): Flow<void>;
  train(metrics: Readonly<Record<string, number>>, at: RunProgress): Flow<void>;
  snapshot(snapshot: Snapshot): Flow<void>;
  close(): Flow<void>;
}

/**
 * Tells loggers of a warning where no session is open: before it began, after it closed. Goes to the console where none
 * of them listens. A logger that throws is told of to the others, and stops nothing.
 */
export function logWarning(loggers: readonly Logger[], where: string, message: string): void {
  telling(loggers).warn(where, message);
}

/** Closes loggers, each for its patience at most. What one throws is told of, and keeps no other from closing. */
export async function closeLoggers(loggers: readonly Logger[]): Promise<void> {
  await drive(telling(loggers).close());
}

export function telling(loggers: readonly Logger[]): Telling {
  const failed = new Set<Logger>();
  const listeners = loggers.filter((logger) => logger.event !== undefined);

  function event(told: SessionEvent): void {
    const hearing = listeners.filter((logger) => !unanswering.has(logger));
    for (const logger of hearing) {
      try {
        // Nobody waits for it, but what an async one throws ends the process where nobody takes it.
        const answer: unknown = logger.event!(told);
        if (isPromise(answer)) answer.then(undefined, (error) => recordFailure(logger, "event", error));
      } catch (error) {
        recordFailure(logger, "event", error);
      }
    }
    // Without a logger that listens, a warning would be lost.
    if (hearing.length === 0 && told.kind === "warning")
      console.warn(`[periodic-eval] ${told.where}: ${told.message}`);
  }

  function tellWarning(where: string, message: string): void {
    event({ kind: "warning", where, message });
  }

  function recordFailure(logger: Logger, what: string, error: unknown): void {
    // What closing says is the last word, of all that was lost.
    const isLast = what === "close";
    if (failed.has(logger) && !isLast) return;
    failed.add(logger);
    const then = isLast ? "" : ", and is not told of again";
    tellWarning(`logger "${logger.name}"`, `${what} threw${then}: ${errorMessage(error)}`);
  }

  function giveUp(logger: Logger, what: Told): void {
    unanswering.add(logger);
    failed.add(logger);
    const then = what === "close" ? "it may lack its last records" : "it is passed over from here on";
    tellWarning(
      `logger "${logger.name}"`,
      `${what} did not answer within ${patienceOf(logger)} s: ${then}, and training goes on`,
    );
  }

  function each(what: Told, tell: (logger: Logger) => unknown): Flow<void> {
    return loggers.length === 0 ? noFlow : tellEach(what, tell);
  }

  function* tellEach(what: Told, tell: (logger: Logger) => unknown): Flow<void> {
    for (const logger of loggers) {
      if (logger[what] === undefined || (unanswering.has(logger) && what !== "close")) continue;
      try {
        const answer = tell(logger);
        if (isPromise(answer) && !(yield* wait(isAnsweredInTime(answer, logger)))) giveUp(logger, what);
      } catch (error) {
        recordFailure(logger, what, error);
      }
    }
  }

  return {
    event,
    warn: tellWarning,
    begin: (at) => each("begin", (logger) => logger.begin!(at)),
    train: (metrics, at) => each("train", (logger) => logger.train!(metrics, at)),
    snapshot: (snapshot) => each("snapshot", (logger) => logger.snapshot!(snapshot)),
    close: () => each("close", (logger) => logger.close!()),
  };
}

const patienceOf = ({ patienceSeconds = loggerPatienceSeconds }: Logger): number => patienceSeconds;

/** Whether a logger's promise is kept while its patience lasts; throws what it throws by then. */
async function isAnsweredInTime(answer: PromiseLike<unknown>, logger: Logger): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeUp = new Promise<boolean>((resolve) => {
    // setTimeout holds no more than 2³¹ − 1 milliseconds. It keeps a process alive in which nothing else is going on.
    timer = setTimeout(() => resolve(false), Math.min(1000 * patienceOf(logger), 2 ** 31 - 1));
  });
  try {
    return await Promise.race([Promise.resolve(answer).then(() => true), timeUp]);
  } finally {
    clearTimeout(timer);
  }
}
