import { onTestFinished, vi } from "vitest";

/** The header that identifies an attempt. A test server collects the ids of the attempts that it leaves unanswered. */
export const attemptHeader = "x-attempt";

/** Timers longer than this use real time, because they limit whole calls. */
const longestSkippedMs = 60_000;

/** Whether Node's fetch sets the timer. Its timers (keep-alive, socket timeouts) use real time. */
const isSetByFetch = () => /node:internal.*undici/.test(new Error("stack").stack!);

/** Calls `end` when a body that is read with a reader has ended or is cancelled. */
function onBodyEnd({ body }: Response, end: () => void): void {
  if (body === null) return end();
  const open = body.getReader.bind(body) as () => ReadableStreamDefaultReader<Uint8Array>;
  const getReader = () => {
    const reader = open();
    const [read, cancel] = [reader.read.bind(reader), reader.cancel.bind(reader)];
    reader.read = () =>
      read().then(
        (result) => (result.done && end(), result),
        (error: unknown) => {
          end();
          throw error;
        },
      );
    reader.cancel = (reason) => (end(), cancel(reason));
    return reader;
  };
  Object.assign(body, { getReader });
}

/**
 * Fires timers of a minute or less without waiting, until the test ends. The next timer fires when the only attempts in flight
 * are ones that the server leaves unanswered. Retry delays and timeouts therefore take no time, and no attempt times out before
 * its reply arrives.
 *
 * @param unanswered The ids of attempts that the server leaves unanswered.
 */
export function skipWaits(unanswered: ReadonlySet<string>): void {
  const real = { setTimeout, clearTimeout, fetch };
  const timers = new Map<object, { readonly at: number; readonly run: () => void }>();
  const inFlight = new Set<string>();
  let now = 0;
  let attempts = 0;

  vi.stubGlobal("setTimeout", (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
    if (ms > longestSkippedMs || isSetByFetch()) return real.setTimeout(run, ms, ...args);
    const timer = {};
    timers.set(timer, { at: now + ms, run: () => run(...args) });
    return timer;
  });
  vi.stubGlobal("clearTimeout", (timer: object) => {
    if (!timers.delete(timer)) real.clearTimeout(timer as NodeJS.Timeout);
  });
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const id = String((attempts += 1));
    const headers = new Headers(init.headers);
    headers.set(attemptHeader, id);
    const end = () => void inFlight.delete(id);
    init.signal!.addEventListener("abort", end, { once: true });
    inFlight.add(id);
    try {
      const response = await real.fetch(url, { ...init, headers });
      onBodyEnd(response, end);
      return response;
    } catch (error) {
      end();
      throw error;
    }
  });
  const clock = setInterval(() => {
    if (![...inFlight].every((id) => unanswered.has(id))) return;
    const [next] = [...timers].sort(([, a], [, b]) => a.at - b.at);
    if (next === undefined) return;
    const [timer, { at, run }] = next;
    timers.delete(timer);
    now = at;
    run();
  }, 1);
  onTestFinished(() => {
    clearInterval(clock);
    vi.unstubAllGlobals();
  });
}
