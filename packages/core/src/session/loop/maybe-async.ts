import type { Awaitable } from "../../contracts/json.ts";

/**
 * A computation that may wait but need not. Run by `drive`, it stays synchronous as long as nothing it waits for is a
 * promise: a step that asks for nothing costs no turn of the event loop.
 */
export type Flow<T> = Generator<unknown, T, unknown>;

/** A flow that is over: what has nothing to do at most steps need not make one each time. */
export const noFlow: Flow<void> = over();

function over(): Flow<void> {
  const flow = (function* (): Flow<void> {})();
  flow.next();
  return flow;
}

/** `yield* wait(value)` is `await value` without a turn where the value is no promise. */
export function* wait<T>(value: Awaitable<T>): Flow<T> {
  return isPromise(value) ? ((yield value) as T) : value;
}

/** Runs a flow to its end: the result itself where it never waited, else a promise of it. */
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
