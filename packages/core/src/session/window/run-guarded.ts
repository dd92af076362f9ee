import {
  type EnteredGuard,
  type Guard,
  type GuardContext,
  type Awaitable,
  type SessionEvent,
  type Evidence,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { isPromise, wait, type Flow } from "../../model/maybe-async.ts";
import type { Reporter } from "../records/reporter.ts";

/** The result of a body that ran inside guards. It is never thrown: evidence matters most when the body failed. */
export interface Guarded<T> {
  readonly outcome: { readonly value: T } | { readonly error: unknown };
  /** Evidence of the guards that were entered, in their order. */
  readonly evidence: readonly Evidence[];
}

/**
 * Enters guards in order, runs the body, and always leaves the guards in reverse order. The body receives the fingerprint that
 * the guard named `weights` saw; null without such a guard.
 */
export function* runGuarded<T>(
  guards: readonly Guard[],
  contextOf: (index: number) => GuardContext,
  body: (fingerprint: string | null) => Awaitable<T>,
): Flow<Guarded<T>> {
  const entered: EnteredGuard[] = [];
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

// `enter` and `leave` are plain functions: around hooks they run for every guard at every step, and a generator each would
// cost more than most guards do.

function enter(guard: Guard, context: GuardContext): Awaitable<EnteredGuard> {
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

function leave(guard: Guard, entered: EnteredGuard): Awaitable<Evidence> {
  const finished = (evidence: Evidence) => (guard.advisory ? { ...evidence, advisory: true } : evidence);
  // A guard that throws may not have restored training's state, so its evidence is "disturbed", not "not observed".
  const failed = (error: unknown) =>
    finished({
      part: guard.name,
      before: entered.before,
      after: null,
      intact: false,
      note: `leaving failed: ${errorMessage(error)}`,
    });
  try {
    const leaving = entered.leave();
    return isPromise(leaving) ? leaving.then(finished, failed) : finished(leaving);
  } catch (error) {
    return failed(error);
  }
}

/** Whether evidence breaks a receipt: a guard saw a disturbance that counts against the training. */
export function isBroken({ intact, advisory }: Evidence): boolean {
  return intact === false && advisory !== true;
}

/** Where windows report progress and broken receipts, besides warnings and errors. */
export interface WindowReporter extends Reporter {
  /** Reports that `done` of `total` rows are measured. */
  measuring(event: Omit<Extract<SessionEvent, { kind: "measuring" }>, "kind">): void;
  /** Reports how the budget reduces measurements. */
  plan(message: string): void;
  /** Stops training, throws or does nothing, depending on `onBrokenReceipt`. */
  receiptBroken(message: string, makeError: () => PeriodicEvalError): void;
}

export function reportDisturbance(
  reporter: WindowReporter,
  evidence: Evidence,
  by: string,
  isFirst = true,
): void {
  const guard = evidence.part;
  const change = describeChange(evidence);
  if (isFirst) reporter.warn(`guard "${guard}"`, `training was disturbed by ${by}: ${change}`);
  const makeError = () =>
    new PeriodicEvalError({
      code: "receipt",
      where: `guard "${guard}"`,
      got: `a training disturbed by ${by} (${change})`,
      expected: "measurements that leave training unchanged",
      fix: 'Fix the callback or evaluation that changes training, or, in code, set onBrokenReceipt: "record" to continue.',
    });
  reporter.receiptBroken(`guard "${guard}" saw training disturbed by ${by}`, makeError);
}

export function describeChange({ before, after, note }: Evidence): string {
  const change = `${before ?? "unknown"} before, ${after ?? "unknown"} after`;
  return note === undefined ? change : `${change}; ${note}`;
}
