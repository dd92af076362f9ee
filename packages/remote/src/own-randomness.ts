import { divertMathRandom } from "@periodic-eval/core/session";
import { AsyncLocalStorage } from "node:async_hooks";

const own = new AsyncLocalStorage<() => number>();
const ownStream = () => own.getStore();

/**
 * Runs work whose draws from `Math.random`, now or behind any `await`, are its own: clients name requests and spread
 * retries by it, beside a training whose dropout draws from the same.
 */
export function withOwnRandomness<T>(work: () => Promise<T>): Promise<T> {
  divertMathRandom(ownStream);
  return own.run(() => crypto.getRandomValues(new Uint32Array(1))[0]! / 2 ** 32, work);
}
