import type { Awaitable } from "../../contracts/json.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { drive, type Flow } from "../../internal/maybe-async.ts";

export interface CallsOptions {
  /** Throws the error that a call left for the caller. */
  throwError(): void;
  /** Ends the measurement that is running. */
  interrupt(): void;
  close(): Promise<void>;
}

/** The calls of a session's methods: one at a time, and none after `close`. */
export class SessionCalls {
  readonly #options: CallsOptions;
  /** The method that is running. */
  #running: string | null = null;
  #onDone: (() => void) | null = null;
  #closing: Promise<void> | null = null;

  constructor(options: CallsOptions) {
    this.#options = options;
  }

  /** Runs a method to its end, without a turn of the event loop if it waits for nothing. */
  run<T>(method: string, flow: () => Flow<T>): Awaitable<T> {
    if (this.#running !== null)
      throw misuse(
        method,
        `a call while ${this.#running} is running`,
        "one call at a time",
        `Await session.${this.#running}().`,
      );
    if (this.#closing !== null)
      throw misuse(method, "a call after close", "an open session", "Open another session.");
    this.#running = method;
    return drive(this.#finish(flow()));
  }

  /** Closes once, after the call that is running. Only the first call of `close` throws what went wrong. */
  async close(): Promise<void> {
    if (this.#closing !== null) return this.#closing.catch(() => undefined);
    this.#closing = this.#closeNow();
    return this.#closing;
  }

  *#finish<T>(flow: Flow<T>): Flow<T> {
    try {
      const result = yield* flow;
      this.#options.throwError();
      return result;
    } finally {
      this.#running = null;
      this.#onDone?.();
    }
  }

  async #closeNow(): Promise<void> {
    if (this.#running !== null) {
      this.#options.interrupt();
      await new Promise<void>((resolve) => (this.#onDone = resolve));
    }
    await this.#options.close();
  }
}

/** Returns the error for a call of a session's method in the wrong state or with a wrong argument. */
export function misuse(method: string, got: string, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "config", where: `session.${method}`, got, expected, fix });
}
