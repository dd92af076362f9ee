import type { Awaitable } from "@periodic-eval/contracts";

/**
 * A computation that may wait. `drive` runs it synchronously as long as it waits for no promise: a training step without
 * requests costs no turn of the event loop.
 */
export type Flow<T> = Generator<unknown, T, unknown>;

/** A finished flow, for functions that have nothing to do at most steps: making a generator each time would cost more. */
export const noFlow: Flow<void> = finishedFlow();

function finishedFlow(): Flow<void> {
  const flow = (function* (): Flow<void> {})();
  flow.next();
  return flow;
}

/** `yield* wait(value)` is `await value`, without a turn of the event loop if the value is no promise. */
export function* wait<T>(value: Awaitable<T>): Flow<T> {
  return isPromise(value) ? ((yield value) as T) : value;
}

/** Runs a flow to its end. Returns the result itself if the flow never waited, else a promise of it. */
export function drive<T>(flow: Flow<T>): Awaitable<T> {
  const state = flow.next();
  return state.done ? state.value : resume(flow, state.value);
}

async function resume<T>(flow: Flow<T>, first: unknown): Promise<T> {
  let pending = first;
  for (;;) {
    const settled = await Promise.resolve(pending).then(
      (value) => () => flow.next(value),
      (error: unknown) => () => flow.throw(error),
    );
    const state = settled();
    if (state.done) return state.value;
    pending = state.value;
  }
}

export function isPromise<T>(value: Awaitable<T>): value is Promise<T> {
  return (
    typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function"
  );
}
