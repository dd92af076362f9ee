/** The delay between two polls of an SDK queue. */
export interface QueueDelay {
  wait(milliseconds?: number): Promise<unknown>;
  cancel(): unknown;
}

export const pollMilliseconds = 20;

/**
 * Makes a queue of the SDK poll every 20 ms while `isAwaited`, instead of every second or less often. Changes only this instance,
 * because the SDK uses the same class between retries of a request. Does nothing without a delay.
 */
export function shortenWaits(delay: QueueDelay | undefined, isAwaited: () => boolean): void {
  if (delay === undefined) return;
  const wait = delay.wait.bind(delay);
  delay.wait = (milliseconds) => wait(isAwaited() ? pollMilliseconds : milliseconds);
}
