import type { Control, SessionOptions, PeriodicEvalError } from "@periodic-eval/contracts";

/** The answer to a step at which nothing is requested of the loop. */
export const noControl: Control = Object.freeze({ stop: null, save: null });

/** Requests to the training loop: stop, save, or an error to throw. */
export class LoopControl {
  readonly #options: Pick<SessionOptions, "onFailure" | "onBrokenReceipt">;
  #stop: string | null = null;
  #save: string | null = null;
  brokenReceipt: string | null = null;
  #error: { readonly thrown: unknown } | null = null;

  readonly #onStop: (reason: string) => void;

  /** @param onStop Called with the first reason to stop. */
  constructor(
    options: Pick<SessionOptions, "onFailure" | "onBrokenReceipt">,
    onStop: (reason: string) => void,
  ) {
    this.#options = options;
    this.#onStop = onStop;
  }

  requestStop(reason: string): void {
    if (this.#stop !== null) return;
    this.#stop = reason;
    this.#onStop(reason);
  }

  requestSave(reason: string): void {
    this.#save ??= reason;
  }

  /** Keeps the first error for the caller, if `onFailure` is `"throw"`. */
  fail(error: unknown): void {
    if (this.#options.onFailure === "throw") this.#error ??= { thrown: error };
  }

  receiptBroken(message: string, makeError: () => PeriodicEvalError): void {
    const { onBrokenReceipt = "stop" } = this.#options;
    if (onBrokenReceipt === "stop") {
      this.brokenReceipt ??= message;
      this.requestStop(message);
    } else if (onBrokenReceipt === "throw") {
      this.#error ??= { thrown: makeError() };
    }
  }

  /** Returns the requests. A stop stays requested; a save is requested once. */
  take(): Control {
    const [stop, save] = [this.#stop, this.#save];
    if (stop === null && save === null) return noControl;
    this.#save = null;
    return { stop, save };
  }

  /** Throws the error that was kept, once. */
  throwError(): void {
    const error = this.#error;
    this.#error = null;
    if (error !== null) throw error.thrown;
  }
}
