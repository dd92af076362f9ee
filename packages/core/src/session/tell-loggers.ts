import { messageOf } from "../message-of.ts";
import type { Snapshot } from "../snapshots/schema.ts";
import { noFlow, wait, type Flow } from "./maybe-async.ts";
import type { Logger, PhaseBegin, RunProgress, SessionEvent } from "./types.ts";

type Told = "begin" | "train" | "snapshot" | "close";

/** All loggers as one. A logger that throws is told of once and never stops training. */
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
export function warn(loggers: readonly Logger[], where: string, message: string): void {
  telling(loggers).warn(where, message);
}

export function telling(loggers: readonly Logger[]): Telling {
  const failed = new Set<Logger>();
  const hearing = loggers.filter((logger) => logger.event !== undefined);

  function event(told: SessionEvent): void {
    for (const logger of hearing) {
      try {
        logger.event!(told);
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
    tellWarning(`logger "${logger.name}"`, `${what} threw${then}: ${messageOf(error)}`);
  }

  function each(what: Told, tell: (logger: Logger) => unknown): Flow<void> {
    return loggers.length === 0 ? noFlow : tellEach(what, tell);
  }

  function* tellEach(what: Told, tell: (logger: Logger) => unknown): Flow<void> {
    for (const logger of loggers) {
      if (logger[what] === undefined) continue;
      try {
        yield* wait(tell(logger));
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
