import { pausedSeconds } from "#platform";
import { workingSeconds } from "./working-clock.ts";

/** Returns a delay for `setTimeout`, which takes at most 2³¹ − 1 milliseconds. */
const toMilliseconds = (seconds: number): number => Math.min(1000 * seconds, 2 ** 31 - 1);

/** Calls `onTimeUp` after a number of seconds, in which the process was not paused. Returns a function that prevents it. */
export function startTimeout(seconds: number, onTimeUp: () => void): () => void {
  const end = workingSeconds() + seconds;
  let paused = pausedSeconds();
  let timer: ReturnType<typeof setTimeout>;
  const check = () => {
    const before = paused;
    paused = pausedSeconds();
    const left = Math.min(paused - before, end - workingSeconds());
    if (left > 0) wait(left);
    else onTimeUp();
  };
  const wait = (left: number) => (timer = setTimeout(check, toMilliseconds(left)));
  wait(seconds);
  return () => clearTimeout(timer);
}

/** Whether a promise resolves within a number of seconds. Throws if it rejects by then. */
export async function resolvesWithin(promise: PromiseLike<unknown>, seconds: number): Promise<boolean> {
  let stop: () => void;
  const timeUp = new Promise<boolean>((resolve) => {
    // The timer keeps a process alive that waits for nothing else.
    stop = startTimeout(seconds, () => resolve(false));
  });
  try {
    return await Promise.race([Promise.resolve(promise).then(() => true), timeUp]);
  } finally {
    stop!();
  }
}
