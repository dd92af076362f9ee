/** What a queue of the SDK waits on before it looks into itself again. */
export interface QueueDelay {
  wait(milliseconds?: number): Promise<unknown>;
  cancel(): unknown;
}

export const pollMilliseconds = 20;

/**
 * Has a queue of the SDK, which looks into itself every second or slower, do so at once while `isAsked`. Only this one: the
 * SDK waits between two tries of a request on others of the same class. Without one the queue goes on slowly.
 */
export function shortenWaits(delay: QueueDelay | undefined, isAsked: () => boolean): void {
  if (delay === undefined) return;
  const wait = delay.wait.bind(delay);
  delay.wait = (milliseconds) => wait(isAsked() ? pollMilliseconds : milliseconds);
}
