/** Returns a delay for `setTimeout`, which takes at most 2³¹ − 1 milliseconds. */
export const toMilliseconds = (seconds: number): number => Math.min(1000 * seconds, 2 ** 31 - 1);

/** Whether a promise resolves within a number of seconds. Throws if it rejects by then. */
export async function resolvesWithin(promise: PromiseLike<unknown>, seconds: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeUp = new Promise<boolean>((resolve) => {
    // The timer keeps a process alive that waits for nothing else.
    timer = setTimeout(() => resolve(false), toMilliseconds(seconds));
  });
  try {
    return await Promise.race([Promise.resolve(promise).then(() => true), timeUp]);
  } finally {
    clearTimeout(timer);
  }
}
