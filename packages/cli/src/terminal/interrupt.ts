import { PeriodicEvalError } from "@periodic-eval/core";

/**
 * Listens for Ctrl-C. The first one aborts the signal, so that a run writes its measurements and the same command can resume
 * it; the second one ends the process at once.
 */
export function onInterrupt(): { readonly signal: AbortSignal; stopListening(): void } {
  const controller = new AbortController();
  const abort = () => controller.abort(new Error("interrupted"));
  process.once("SIGINT", abort);
  return { signal: controller.signal, stopListening: () => void process.off("SIGINT", abort) };
}

/**
 * Returns the error of an interrupted run, of which the command line prints `got` and `fix`.
 *
 * @param place Where training stopped: `in em at step 35 of 200`.
 * @param fix The sentence that says how to continue.
 */
export const interruptedError = (where: string, place: string, fix: string, cause?: unknown) =>
  new PeriodicEvalError({
    code: "aborted",
    where,
    got: `Interrupted${place === "" ? "" : ` ${place}`}`,
    expected: "training to finish",
    fix,
    cause,
    detail: { kind: "interrupted" },
  });
