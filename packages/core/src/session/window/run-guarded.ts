import type { Entered, Guard, GuardContext } from "../../contracts/guard.ts";
import type { Awaitable } from "../../contracts/json.ts";
import { errorMessage } from "../../internal/error-message.ts";
import type { Evidence } from "../../contracts/snapshot.ts";
import { isPromise, wait, type Flow } from "../loop/maybe-async.ts";

/** What came of a body run inside guards. Never thrown: the evidence matters most where the body failed. */
export interface Guarded<T> {
  readonly outcome: { readonly value: T } | { readonly error: unknown };
  /** In the guards' order; of guards that were entered. */
  readonly evidence: readonly Evidence[];
}

/**
 * Enters guards in order, runs the body, and leaves them in reverse, whatever happens. The body gets the fingerprint
 * that the guard named `weights` saw, null where there is none.
 */
export function* guarded<T>(
  guards: readonly Guard[],
  contextOf: (index: number) => GuardContext,
  body: (fingerprint: string | null) => Awaitable<T>,
): Flow<Guarded<T>> {
  const entered: Entered[] = [];
  const evidence: Evidence[] = [];
  let outcome: Guarded<T>["outcome"];
  try {
    let fingerprint: string | null = null;
    for (const guard of guards) {
      const entering = enter(guard, contextOf(entered.length));
      const one = isPromise(entering) ? yield* wait(entering) : entering;
      entered.push(one);
      if (guard.name === "weights") fingerprint = one.before;
    }
    outcome = { value: yield* wait(body(fingerprint)) };
  } catch (error) {
    outcome = { error };
  }
  for (let index = entered.length - 1; index >= 0; index--) {
    const leaving = leave(guards[index]!, entered[index]!);
    evidence.push(isPromise(leaving) ? yield* wait(leaving) : leaving);
  }
  evidence.reverse();
  return { outcome, evidence };
}

// Plain functions: round hooks every guard is entered and left at every step, and a generator each would cost more than
// what most guards do.

function enter(guard: Guard, context: GuardContext): Awaitable<Entered> {
  const failed = (cause: unknown): never => {
    throw new Error(`guard "${guard.name}" could not be entered: ${errorMessage(cause)}`, { cause });
  };
  try {
    const entering = guard.enter(context);
    return isPromise(entering) ? entering.then((one) => one, failed) : entering;
  } catch (cause) {
    return failed(cause);
  }
}

function leave(guard: Guard, entered: Entered): Awaitable<Evidence> {
  const told = (evidence: Evidence) => (guard.advisory ? { ...evidence, advisory: true } : evidence);
  // What it should have restored may not be restored: that is no "not observed".
  const failed = (error: unknown) =>
    told({
      part: guard.name,
      before: entered.before,
      after: null,
      intact: false,
      note: `leaving failed: ${errorMessage(error)}`,
    });
  try {
    const leaving = entered.leave();
    return isPromise(leaving) ? leaving.then(told, failed) : told(leaving);
  } catch (error) {
    return failed(error);
  }
}

/** A receipt is broken where a guard saw a disturbance that counts against the training. */
export function isBroken({ intact, advisory }: Evidence): boolean {
  return intact === false && advisory !== true;
}
