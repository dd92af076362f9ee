import { process } from "#platform";

/**
 * Whether a process with this id runs on this machine. A file that names the caller's own id may come from an earlier process: in a
 * container, ids repeat. Callers must check for that themselves.
 */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process belongs to another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The signals that ask a process to end, and the exit code of a process that they ended: 128 + the signal's number. */
const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGUSR1: 138, SIGTERM: 143 } as const;

export type EndingSignal = keyof typeof exitCodes;

export const endingSignals = Object.keys(exitCodes) as readonly EndingSignal[];

/** Returns the exit code of a process that a signal ended, as a shell reports it. */
export const exitCodeOf = (signal: EndingSignal): number => exitCodes[signal];

/**
 * Calls `listener` at the first signal that asks the process to end: SIGINT (Ctrl-C), SIGTERM (`docker stop`, Kubernetes, SLURM),
 * SIGHUP (a closed terminal) or SIGUSR1 (SLURM's warning before a time limit). A second signal ends the process at once.
 *
 * Windows knows only some of them; a listener for another one is never called there. A listener for SIGUSR1 replaces Node's,
 * which opens the debugger.
 *
 * @param signals Default: all of them.
 * @returns A function that stops listening.
 */
export function onEndingSignal(
  listener: (signal: EndingSignal) => void,
  signals: readonly EndingSignal[] = endingSignals,
): () => void {
  let isFirst = true;
  const receive = (signal: EndingSignal) => {
    if (!isFirst) return process.exit(exitCodes[signal]);
    isFirst = false;
    // The system's own action also ends a process that computes and does not look for signals. Two signals that arrived during
    // one computation both come here first. The system ignores a signal of process 1 (a container's) that nobody listens for.
    if (process.pid !== 1) setImmediate(stop).unref();
    listener(signal);
  };
  const receivers = signals.map((signal) => ({ signal, receiver: () => receive(signal) }));
  const stop = () => {
    for (const { signal, receiver } of receivers) process.off(signal, receiver);
  };
  for (const { signal, receiver } of receivers) process.on(signal, receiver);
  return stop;
}

/** Returns the bytes that this process can still use; null outside Node. */
export function availableMemory(): number | null {
  if (typeof process === "undefined") return null;
  return (process as { availableMemory?: () => number }).availableMemory?.() ?? null;
}
