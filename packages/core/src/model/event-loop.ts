import { PeriodicEvalError } from "@periodic-eval/contracts";

const listeners = new WeakMap<AbortSignal, (tokens: number) => void>();

/** Calls `listener` whenever work with this signal yields to events: the engine is making progress, and is about to write these tokens. */
export const onYield = (signal: AbortSignal, listener: (tokens: number) => void): void =>
  void listeners.set(signal, listener);

/**
 * Lets timers, sockets and abort signals run, then throws if `signal` was aborted. On host backends `tensor.data()` settles in a
 * microtask, so a long call would otherwise never notice an abort.
 *
 * @param tokens Number of tokens that the work writes until its next call.
 * @throws PeriodicEvalError `aborted`, with the signal's reason as its cause.
 */
export async function yieldToEvents(signal: AbortSignal, where: string, tokens = 0): Promise<void> {
  listeners.get(signal)?.(tokens);
  await nextTurn();
  if (!signal.aborted) return;
  throw new PeriodicEvalError({
    code: "aborted",
    where,
    got: "an abort signal",
    expected: "to finish",
    fix: "Repeat the call if the abort was not intended: its results are lost.",
    cause: signal.reason,
  });
}

/** Milliseconds of work between two turns of other work. */
const turnMs = 50;

/**
 * Maps items in order, and yields to events after each 50 ms of work: encoding 60,000 texts at once would block a process for half a
 * minute.
 *
 * @throws PeriodicEvalError `aborted`; the errors of `map`.
 */
export async function mapInTurns<T, R>(
  items: readonly T[],
  { signal, where }: { readonly signal: AbortSignal; readonly where: string },
  map: (item: T, index: number) => R,
): Promise<R[]> {
  const results: R[] = [];
  let since = performance.now();
  for (const [index, item] of items.entries()) {
    results.push(map(item, index));
    if (performance.now() - since < turnMs) continue;
    await yieldToEvents(signal, where);
    since = performance.now();
  }
  return results;
}

const resolvers: (() => void)[] = [];
let channel: MessageChannel | undefined;

/**
 * Lets timers, sockets and messages run. Node's setImmediate runs after pending input. In browsers a message to itself does: a timer
 * waits 4 ms when nested, less than a batch or a token takes, and up to a second in a hidden tab, where no frame is drawn either.
 */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    if (typeof setImmediate === "function") return void setImmediate(() => resolve());
    resolvers.push(resolve);
    channel ??= listeningChannel();
    channel.port2.postMessage(null);
  });

function listeningChannel(): MessageChannel {
  const made = new MessageChannel();
  made.port1.addEventListener("message", () => resolvers.shift()?.());
  made.port1.start();
  return made;
}
