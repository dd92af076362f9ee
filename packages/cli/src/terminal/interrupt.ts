import { PeriodicEvalError } from "@periodic-eval/core";
import { exitCodeOf, onEndingSignal, type EndingSignal } from "@periodic-eval/store";
import type { Terminal } from "./terminal.ts";

let received: EndingSignal | null = null;

/** Milliseconds after which a person begins to wonder whether a command received Ctrl-C. */
const noticeMs = 2000;

/**
 * Listens for Ctrl-C and the other signals that ask a process to end. The first one aborts the signal, so that a run writes a
 * checkpoint and its measurements and the same command can resume it; the second one ends the process at once. If the command
 * has not ended after two seconds, a notice says that it will.
 */
export function onInterrupt({ err }: Pick<Terminal, "err">): {
  readonly signal: AbortSignal;
  stopListening(): void;
} {
  const controller = new AbortController();
  let notice: NodeJS.Timeout | undefined;
  received = null;
  const ignoreSignals = onEndingSignal((signal) => {
    received = signal;
    const notify = () =>
      err("The command finishes its current step first. Press Ctrl-C again to end it at once.");
    notice = setTimeout(notify, noticeMs).unref();
    controller.abort(Object.assign(new Error("interrupted"), { name: "AbortError" }));
  });
  return {
    signal: controller.signal,
    stopListening() {
      clearTimeout(notice);
      ignoreSignals();
    },
  };
}

/** Returns the exit code of a command that failed because a signal interrupted it; null if it failed for another reason. */
export function interruptedCode(error: unknown): number | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const isAborted = cause.name === "AbortError" || PeriodicEvalError.is(cause, "aborted");
    if (received !== null && isAborted) return exitCodeOf(received);
  }
  return null;
}

/**
 * Returns the error of an interrupted run, of which the command line prints `got` and `fix`.
 *
 * @param position Where training stopped: `in em at step 35 of 200`.
 * @param fix The sentence that says how to continue.
 */
export const interruptedError = (where: string, position: string, fix: string, cause?: unknown) =>
  new PeriodicEvalError({
    code: "aborted",
    where,
    got: `Interrupted${position === "" ? "" : ` ${position}`}`,
    expected: "training to finish",
    fix,
    cause,
    detail: { kind: "interrupted" },
  });

/** The exit code of a training, or of a watcher, that a condition of `stop_when` ended. */
export const stoppedCode = 4;

/** Ends a command with an exit code. The command line prints the cause; without one, the command has printed why. */
export class CommandFailure extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, cause: unknown = null) {
    super(`exit code ${exitCode}`, { cause });
    this.name = "CommandFailure";
    this.exitCode = exitCode;
  }
}
