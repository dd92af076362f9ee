import { errorMessage, printable, type Reporter } from "@periodic-eval/core/internal";

/** Receives warnings: a user's function, or `process.emitWarning`. */
export type OnWarning = (message: string) => void;

const emitWarning: OnWarning = (message) => process.emitWarning(printable(message), "PeriodicEvalWarning");

/** Returns a function that never throws: if `onWarning` does, it emits the warning and the error as warnings of the process. */
export function safeWarning(onWarning: OnWarning = emitWarning): OnWarning {
  return (message) => {
    const failed = (error: unknown) => {
      emitWarning(message);
      emitWarning(`onWarning threw: ${errorMessage(error)}`);
    };
    try {
      // An async function would end the process when it rejects.
      const answer: unknown = onWarning(message);
      Promise.resolve(answer).catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}

/** Returns a reporter that warns of errors in promises and timers of user code, which nothing awaits. */
export const reporterTo = (warn: OnWarning): Reporter => ({
  warn: (where, message) => warn(`${where}: ${message}`),
  fail: () => undefined,
});

/** The reporter of graders that are opened without one. */
export const processReporter = reporterTo(emitWarning);
