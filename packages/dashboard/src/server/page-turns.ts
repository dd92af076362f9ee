/** Makes a page count as in progress until a promise settles, although its reply has begun. */
export type Hold = (rest: Promise<unknown>) => void;

/** Runs one part of the work on a page: reading one file, or one `metrics.json`. */
export type Turn = <T>(part: () => Promise<T>) => Promise<T>;

/**
 * Shares the server between the pages in progress. One part of work runs at a time, and pages take turns, so that a small page
 * waits for single parts of larger ones. Of the pages whose own parts take longer than `lightMs`, one is in progress at a time: each
 * may need hundreds of megabytes. A page whose client has disconnected ends at its next part.
 *
 * @param lightMs Milliseconds of its own work after which a page counts as large.
 */
export function pageTurns(lightMs = 500) {
  const takeTurn = oneAtATime();
  let lastBreak = performance.now();
  const takeHeavy = oneAtATime();
  return async <T>(signal: AbortSignal, work: (turn: Turn, hold: Hold) => Promise<T>): Promise<T> => {
    let workedMs = 0;
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    let heavy: Promise<void> | null = null;
    const held: Promise<unknown>[] = [];
    const becomeHeavy = () =>
      new Promise<void>((resolve) => {
        void takeHeavy(() => {
          resolve();
          return ended;
        });
      });
    const turn: Turn = async (part) => {
      signal.throwIfAborted();
      if (workedMs > lightMs) await (heavy ??= becomeHeavy());
      return takeTurn(async () => {
        // Reading a small file is synchronous.
        if (performance.now() - lastBreak > breakMs) {
          await new Promise((resolve) => setImmediate(resolve));
          lastBreak = performance.now();
        }
        signal.throwIfAborted();
        const began = performance.now();
        try {
          return await part();
        } finally {
          workedMs += performance.now() - began;
        }
      });
    };
    try {
      return await work(turn, (rest) => held.push(rest));
    } finally {
      void Promise.allSettled(held).then(end);
    }
  };
}

/** Milliseconds of work after which events are handled: connections, timers and other pages. */
const breakMs = 15;

/** Returns a queue that starts each task after the previous one has ended, successfully or not. */
function oneAtATime() {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(task: () => Promise<T>): Promise<T> => {
    const current = last.then(task, task);
    last = current.catch(() => undefined);
    return current;
  };
}
