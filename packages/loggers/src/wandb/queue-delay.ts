/** The delay between two polls of an SDK queue. */
export interface QueueDelay {
  wait(milliseconds?: number): Promise<unknown>;
  cancel(): unknown;
}

export const pollMilliseconds = 20;

/**
 * Makes a queue of the SDK, which polls every second or less often, poll at once while `isAsked`. Changes only this instance,
 * because the SDK uses the same class between retries of a request. Does nothing without a delay.
 */
export function shortenWaits(delay: QueueDelay | undefined, isAsked: () => boolean): void {
  if (delay === undefined) return;
  const wait = delay.wait.bind(delay);
  delay.wait = (milliseconds) => wait(isAsked() ? pollMilliseconds : milliseconds);
}
