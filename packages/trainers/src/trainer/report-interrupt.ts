import { existsSync, join, process, readdirSync } from "@periodic-eval/store/platform";
import type { Session } from "@periodic-eval/core";
import { endingSignals, exitCodeOf, onEndingSignal, type EndingSignal } from "@periodic-eval/store";
import { printable } from "@periodic-eval/contracts/options";

/** The training that a signal ends. */
interface Interrupted {
  readonly session: Pick<Session, "phase" | "progress">;
  readonly runDir: string;
  readonly resume: "auto" | "never";
}

/** Ends a training when the process is asked to end. */
export interface Interruption {
  /** Is aborted by the first signal. Training then ends after the current step and writes a checkpoint. */
  readonly signal: AbortSignal;
  /** Starts listening. */
  listen(): void;
  /** Stops listening. */
  stop(): void;
  /** Says where training stopped, what is saved and how to continue, and ends the process if a signal was received. */
  endProcess(interrupted: Interrupted): void;
}

/**
 * Handles Ctrl-C and the other signals that ask a process to end, with the exit code of that signal. Leaves each signal for
 * which the program listens itself, now or later, to the program.
 */
export function interruption(): Interruption {
  const controller = new AbortController();
  let received: EndingSignal | null = null;
  let stop = () => {};
  return {
    signal: controller.signal,
    listen() {
      const free = endingSignals.filter((signal) => process.listenerCount(signal) === 0);
      stop = onEndingSignal((signal) => {
        if (process.listenerCount(signal) > 1) return stop();
        received = signal;
        controller.abort(Object.assign(new Error("interrupted"), { name: "AbortError" }));
      }, free);
    },
    stop: () => stop(),
    endProcess(interrupted) {
      if (received === null) return;
      console.warn(printable(interruptedText(interrupted)));
      process.exit(exitCodeOf(received));
    },
  };
}

export function interruptedText({ session: { phase, progress }, runDir, resume }: Interrupted): string {
  const { step, maxSteps } = progress;
  const status = `${phase} interrupted at step ${step}${maxSteps === null ? "" : ` of ${maxSteps}`}`;
  const saved = newestCheckpoint(join(runDir, "checkpoints", phase));
  const again = resume === "never" ? 'Run it again with resume: "auto"' : "Run it again";
  const next =
    saved === null
      ? "there is no checkpoint yet: config.saveSteps writes some on the way. Run it again to start over."
      : `the newest checkpoint is of step ${saved}. ${again} to continue from there.`;
  return `[periodic-eval] ${status}. The measurements are saved in ${join(runDir, "periodic_eval")}, and ${next}`;
}

function newestCheckpoint(folder: string): number | null {
  if (!existsSync(folder)) return null;
  const steps = readdirSync(folder).flatMap((name) => /^step_(\d+)$/.exec(name)?.[1] ?? []);
  return steps.length === 0 ? null : Math.max(...steps.map(Number));
}
