/** Runs one part of the work on a page: reading one file, or one `metrics.json`. */
export type Turn = <T>(part: () => Promise<T>) => Promise<T>;

/** Milliseconds of its own work after which a page counts as large, and the most pages of unknown size that are made at a time. */
interface PageLimits {
  readonly lightMs: number;
  readonly pages: number;
}

/**
 * Shares the server between pages. One part of work runs at a time, and the pages that are being made take turns, so that a small
 * page waits for single parts of larger ones. The memory for pages is limited, however many clients there are: others wait before
 * they begin, and large pages are made one at a time, because each may need hundreds of megabytes. A page that turns out to be large
 * while another large one is being made drops what it has read, and begins again when it is its turn. A page whose client has
 * disconnected ends at its next part.
 */
export function pageTurns({ lightMs, pages }: PageLimits = { lightMs: 500, pages: 16 }) {
  const [turns, light, large] = [places(1), places(pages), places(1)];
  let lastBreak = performance.now();

  /**
   * Returns the page that `work` makes. `work` may run twice, and must not keep anything after its own signal is aborted.
   *
   * @param sent Waits until the client has read the page. Until then it counts as being made, if it is large.
   */
  return async <T>(
    signal: AbortSignal,
    work: (turn: Turn, signal: AbortSignal) => Promise<T>,
    sent: () => Promise<void> = async () => undefined,
  ): Promise<T> => {
    const first = new AbortController();
    let workedMs = 0;
    let isLarge = false;
    const attempt = (own: AbortSignal): Promise<T> =>
      work(async (part) => {
        own.throwIfAborted();
        if (!isLarge && workedMs > lightMs) {
          isLarge = large.takeIfFree();
          if (!isLarge)
            first.abort(new Error("The page begins again when no other large page is being made."));
        }
        return turns.run(async () => {
          // Reading a small file is synchronous.
          if (performance.now() - lastBreak > breakMs) {
            await new Promise((resolve) => setImmediate(resolve));
            lastBreak = performance.now();
          }
          own.throwIfAborted();
          const began = performance.now();
          try {
            return await part();
          } finally {
            workedMs += performance.now() - began;
          }
        });
      }, own);
    try {
      const early = light.run(() => attempt(AbortSignal.any([signal, first.signal])));
      await early.catch(() => undefined);
      const made = first.signal.aborted ? again() : early;
      await made.catch(() => undefined);
      // Work may report an aborted read as a damaged file.
      signal.throwIfAborted();
      return await made;
    } finally {
      if (isLarge) void sent().finally(large.free);
    }

    async function again(): Promise<T> {
      await large.take();
      isLarge = true;
      return attempt(signal);
    }
  };
}

/** Milliseconds of work after which events are handled: connections, timers and other pages. */
const breakMs = 15;

/** Returns a number of places. Tasks that find none free wait, and take places in the order of their calls. */
function places(count: number) {
  const waiting: (() => void)[] = [];
  let taken = 0;
  const takeIfFree = (): boolean => {
    const isFree = taken < count;
    if (isFree) taken++;
    return isFree;
  };
  const take = async (): Promise<void> => {
    if (!takeIfFree()) await new Promise<void>((resolve) => waiting.push(resolve));
  };
  const free = (): void => {
    const next = waiting.shift();
    if (next === undefined) taken--;
    else next();
  };
  const run = async <T>(task: () => Promise<T>): Promise<T> => {
    await take();
    try {
      return await task();
    } finally {
      free();
    }
  };
  return { takeIfFree, take, free, run };
}
