import type { Logger, PhaseBegin, PhaseEnd, RunProgress, SessionEvent } from "../../contracts/session.ts";
import type { Snapshot, SnapshotKey } from "../../contracts/snapshot.ts";
import { printable } from "../../internal/printable.ts";
import { deepFreeze } from "../../internal/frozen.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { resolvesWithin } from "../../internal/timeout.ts";
import { isOwnCode } from "../../internal/own-code.ts";
import { drive, isPromise, noFlow, wait, type Flow } from "../../internal/maybe-async.ts";
import type { Reporter } from "../owners/reporter.ts";
import { runOwned, type OnLeftBehind } from "../owners/left-behind.ts";

type LoggerCall = "begin" | "train" | "snapshot" | "end" | "close";

/** How long a call may take of a logger that does not set `patienceSeconds`. */
const loggerPatienceSeconds = 60;

/** Loggers that did not answer in time. No session calls them again, except for `close`. */
const unresponsive = new WeakSet<Logger>();

/**
 * Logs a warning outside a session, before it begins or after it is closed. The warning goes to the console if no logger
 * receives events.
 */
export function logWarning(loggers: readonly Logger[], where: string, message: string): void {
  new SessionLog(loggers).warn(where, message);
}

/** Closes loggers, and waits for each at most for its patience. An error of one is logged to the others. */
export async function closeLoggers(loggers: readonly Logger[]): Promise<void> {
  await drive(new SessionLog(loggers).close());
}

/** Runs one call of a logger. */
type AroundLogger = (logger: Logger, work: Flow<void>) => Flow<void>;

/**
 * All loggers as one. A logger that throws or does not answer is reported once and never stops training. They receive frozen values, so
 * that none changes what the others receive.
 */
export class SessionLog {
  readonly #loggers: readonly Logger[];
  readonly #listeners: readonly Logger[];
  /** Loggers whose first error was reported. */
  readonly #failed = new Set<Logger>();
  /** Receives errors of promises, timers and microtasks that a logger left behind. */
  readonly #owners = new Map<Logger, OnLeftBehind>();
  readonly #around: AroundLogger;
  readonly #session: () => Reporter | undefined;

  /**
   * @param around Observes training while a logger is called.
   * @param session Returns the reporter of the session, on whose behalf loggers are called.
   */
  constructor(
    loggers: readonly Logger[],
    around: AroundLogger = (_logger, work) => work,
    session: () => Reporter | undefined = () => undefined,
  ) {
    this.#loggers = [...loggers];
    this.#listeners = loggers.filter((logger) => logger.event !== undefined);
    this.#around = around;
    this.#session = session;
  }

  event(given: SessionEvent): void {
    const event = deepFreeze(given);
    const receivers = this.#listeners.filter((logger) => !unresponsive.has(logger));
    for (const logger of receivers) {
      const failed = (error: unknown) => this.#reportFailure(logger, "event threw", error);
      try {
        // The session does not wait for events, but an unhandled rejection would end the process.
        const answer: unknown = this.#call(logger, () => logger.event!(event));
        if (isPromise(answer)) answer.then(undefined, failed);
      } catch (error) {
        failed(error);
      }
    }
    // Without a receiver, a warning would be lost.
    if (receivers.length === 0 && event.kind === "warning")
      console.warn(printable(`[periodic-eval] ${event.where}: ${event.message}`));
  }

  warn(where: string, message: string, failed?: SnapshotKey): void {
    this.event({ kind: "warning", where, message, ...(failed && { failed }) });
  }

  begin(at: PhaseBegin): Flow<void> {
    const frozen = deepFreeze(at);
    return this.#each("begin", (logger) => logger.begin!(frozen));
  }

  train(metrics: Readonly<Record<string, number>>, at: RunProgress): Flow<void> {
    const frozen = Object.freeze(at);
    return this.#each("train", (logger) => logger.train!(metrics, frozen));
  }

  snapshot(snapshot: Snapshot): Flow<void> {
    return this.#each("snapshot", (logger) => logger.snapshot!(snapshot));
  }

  end(at: PhaseEnd): Flow<void> {
    const frozen = Object.freeze(at);
    return this.#each("end", (logger) => logger.end!(frozen));
  }

  close(): Flow<void> {
    return this.#each("close", (logger) => logger.close!());
  }

  #each(what: LoggerCall, call: (logger: Logger) => unknown): Flow<void> {
    return this.#loggers.length === 0 ? noFlow : this.#callEach(what, call);
  }

  *#callEach(what: LoggerCall, call: (logger: Logger) => unknown): Flow<void> {
    for (const logger of this.#loggers) {
      if (unresponsive.has(logger) && what !== "close") continue;
      const work = this.#callOne(logger, what, call);
      yield* isOwnCode(logger) || what === "end" || what === "close" ? work : this.#around(logger, work);
    }
  }

  *#callOne(logger: Logger, what: LoggerCall, call: (logger: Logger) => unknown): Flow<void> {
    try {
      if (logger[what] === undefined) return;
      const answer = this.#call(logger, call);
      if (isPromise(answer) && !(yield* wait(resolvesWithin(answer, patienceOf(logger)))))
        this.#giveUp(logger, what);
    } catch (error) {
      this.#reportFailure(logger, `${what} threw`, error, what === "close");
    }
  }

  #call(logger: Logger, call: (logger: Logger) => unknown): unknown {
    if (isOwnCode(logger)) return call(logger);
    let owner = this.#owners.get(logger);
    if (owner === undefined) {
      const where = `logger "${logger.name}"`;
      // Once: the logger may leave the same error behind when it receives the warning.
      const report = (error: unknown, what: string) => this.#reportFailure(logger, what, error);
      owner = Object.assign(report, { where, of: this.#session() });
      this.#owners.set(logger, owner);
    }
    return runOwned(owner, call, logger);
  }

  /** @param isLast Whether the error is always reported: that of `close` sums up what the logger lost. */
  #reportFailure(logger: Logger, what: string, error: unknown, isLast = false): void {
    if (this.#failed.has(logger) && !isLast) return;
    this.#failed.add(logger);
    const then = isLast ? "" : " (reported once)";
    this.warn(`logger "${logger.name}"`, `${what}${then}: ${errorMessage(error)}`);
  }

  #giveUp(logger: Logger, what: LoggerCall): void {
    unresponsive.add(logger);
    this.#failed.add(logger);
    const then = what === "close" ? "it may lack its last records" : "it is not called again except to close";
    this.warn(
      `logger "${logger.name}"`,
      `${what} did not answer within ${patienceOf(logger)} s: ${then}, and training continues`,
    );
  }
}

const patienceOf = ({ patienceSeconds = loggerPatienceSeconds }: Logger): number => patienceSeconds;
