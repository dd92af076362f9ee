// A promise that user code leaves behind, and that rejects, ends a Node process. While callbacks and evaluations run, Node
// carries along on whose behalf, so that such a rejection becomes a warning of its callback. This costs every await of the
// process up to a tenth of a microsecond, so it begins with the first code that is not ours.
import type { TrainerCallback } from "../../contracts/callback.ts";
import type { AnyEvaluation } from "../../contracts/evaluation.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { isOwnEvaluation } from "../../internal/own-evaluations.ts";
import type { Reporter } from "../records/reporter.ts";

/** Receives the errors of promises that nothing awaits. */
type OnLeftBehind = (error: unknown) => void;

interface Owners {
  run<A, T>(owner: OnLeftBehind, work: (given: A) => T, given: A): T;
}

/** One for all copies of this package: each of several listeners would take another for the application's own. */
const shared = Symbol.for("periodic-eval.left-behind");

/** Runs user code. Errors of promises that it leaves behind go to `owner`, in Node; browsers log them. */
export function runOwned<A, T>(owner: OnLeftBehind, work: (given: A) => T, given: A): T {
  return owners === null ? work(given) : owners.run(owner, work, given);
}

const owners = openOwners();

function openOwners(): Owners | null {
  const registry = globalThis as { [shared]?: Owners };
  // Not an import: this module also runs in browsers.
  const hooks = globalThis.process?.getBuiltinModule?.("node:async_hooks");
  if (hooks !== undefined) registry[shared] ??= listening(new hooks.AsyncLocalStorage<OnLeftBehind>());
  return registry[shared] ?? null;
}

/** Listens from the first run on, for as long as the process lives: a promise may reject after its session was closed. */
function listening(storage: Owners & { getStore(): OnLeftBehind | undefined }): Owners {
  let isListening = false;
  const report = (error: unknown) => {
    const owner = storage.getStore();
    if (owner !== undefined) return owner(error);
    // Node ends the process if nothing listens. So does this, for a rejection that is not of a callback.
    if (process.listenerCount("unhandledRejection") === 1) throw error;
  };
  return {
    run(owner, work, given) {
      if (!isListening) process.on("unhandledRejection", report);
      isListening = true;
      return storage.run(owner, work, given);
    },
  };
}

/** Runs code of an evaluation that a callback requests. */
export function ownedBy<T>(
  { id }: TrainerCallback,
  evaluation: AnyEvaluation,
  reporter: Reporter,
  work: () => T,
): T {
  if (isOwnEvaluation(evaluation)) return work();
  return runOwned(ownerOf(`callback "${id}"`, reporter), work, undefined);
}

export function ownerOf(where: string, { warn, fail }: Reporter): OnLeftBehind {
  return (error) => {
    warn(where, `a promise that it left behind was rejected: ${errorMessage(error)}`);
    fail(error);
  };
}
