import type {
  Logger,
  PhaseBegin,
  PhaseEnd,
  RunProgress,
  SessionEvent,
  Snapshot,
  SnapshotKey,
  Awaitable,
} from "@periodic-eval/contracts";
import { printable, errorMessage } from "@periodic-eval/contracts/options";
import { resolvesWithin } from "@periodic-eval/store";
import { inOrder, isPromise } from "../../model/in-order.ts";

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
  await new SessionLog(loggers).close();
}

/** All loggers as one. A logger that throws or does not answer is reported once and never stops training. */
export class SessionLog {
  readonly #loggers: readonly Logger[];
  readonly #listeners: readonly Logger[];
  /** Loggers whose first error was reported. */
  readonly #failed = new Set<Logger>();

  constructor(loggers: readonly Logger[]) {
    this.#loggers = [...loggers];
    this.#listeners = loggers.filter((logger) => logger.event !== undefined);
  }

  event(event: SessionEvent): void {
    const receivers = this.#listeners.filter((logger) => !unresponsive.has(logger));
    for (const logger of receivers) {
      const failed = (error: unknown) => this.#reportFailure(logger, "event", error);
      try {
        // The session does not wait for events, but an unhandled rejection would end the process.
        const answer: unknown = logger.event!(event);
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

  begin(at: PhaseBegin): Awaitable<void> {
    return this.#each("begin", (logger) => logger.begin!(at));
  }

  train(metrics: Readonly<Record<string, number>>, at: RunProgress): Awaitable<void> {
    return this.#each("train", (logger) => logger.train!(metrics, at));
  }

  snapshot(snapshot: Snapshot): Awaitable<void> {
    return this.#each("snapshot", (logger) => logger.snapshot!(snapshot));
  }

  end(at: PhaseEnd): Awaitable<void> {
    return this.#each("end", (logger) => logger.end!(at));
  }

  close(): Awaitable<void> {
    return this.#each("close", (logger) => logger.close!());
  }

  #each(what: LoggerCall, call: (logger: Logger) => unknown): Awaitable<void> {
    return inOrder(this.#loggers, (logger) =>
      unresponsive.has(logger) && what !== "close" ? undefined : this.#callOne(logger, what, call),
    );
  }

  #callOne(logger: Logger, what: LoggerCall, call: (logger: Logger) => unknown): Awaitable<void> {
    const failed = (error: unknown) => this.#reportFailure(logger, what, error);
    try {
      const answer = logger[what] === undefined ? undefined : call(logger);
      if (!isPromise(answer)) return undefined;
      const seconds = patienceOf(logger);
      return resolvesWithin(answer, seconds).then((inTime) => {
        if (!inTime) this.#giveUp(logger, what);
      }, failed);
    } catch (error) {
      failed(error);
    }
  }

  /** Reports the first error of a logger, and that of `close`, which sums up what the logger lost. */
  #reportFailure(logger: Logger, what: LoggerCall | "event", error: unknown): void {
    if (this.#failed.has(logger) && what !== "close") return;
    this.#failed.add(logger);
    const problem = what === "close" ? "at close" : `${what} threw (reported once)`;
    this.warn(`logger "${logger.name}"`, `${problem}: ${errorMessage(error)}`);
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
