/**
 * Returns `work` so that it runs once for all callers that wait for the same key. A caller that comes while it runs waits for
 * the next run, and so never receives what was read before its call.
 */
export function coalesced<T>(work: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const latest = new Map<string, { promise: Promise<T>; hasBegun: boolean }>();
  return (key) => {
    const before = latest.get(key);
    if (before?.hasBegun === false) return before.promise;
    const ended = before?.promise.catch(() => undefined) ?? Promise.resolve();
    const run = async (): Promise<T> => {
      await ended;
      entry.hasBegun = true;
      try {
        return await work(key);
      } finally {
        if (latest.get(key) === entry) latest.delete(key);
      }
    };
    const entry = { promise: Promise.resolve() as Promise<unknown> as Promise<T>, hasBegun: false };
    entry.promise = run();
    latest.set(key, entry);
    return entry.promise;
  };
}
