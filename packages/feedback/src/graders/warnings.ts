import { errorMessage, printable } from "@periodic-eval/contracts/options";

/** Receives warnings: a user's function, or `process.emitWarning`. */
export type OnWarning = (message: string) => void;

export const emitWarning: OnWarning = (message) =>
  process.emitWarning(printable(message), "PeriodicEvalWarning");

/** Returns a function that never throws: if `onWarning` does, it emits the warning and the error as warnings of the process. */
export function safeWarning(onWarning: OnWarning = emitWarning): OnWarning {
  return (message) =>
    callUser(
      () => onWarning(message),
      (reason) => {
        emitWarning(message);
        emitWarning(`onWarning threw: ${reason}`);
      },
    );
}

/** Calls a function of the user that nothing waits for. If it throws or rejects, `failed` receives the reason. */
export function callUser(work: () => unknown, failed: (reason: string) => void): void {
  const report = (error: unknown) => failed(errorMessage(error));
  try {
    Promise.resolve(work()).catch(report);
  } catch (error) {
    report(error);
  }
}
