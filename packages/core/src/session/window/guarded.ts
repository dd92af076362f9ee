import type { EnteredGuard, Guard, GuardContext, Awaitable, Evidence } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { isPromise } from "../../model/in-order.ts";

/** The result of a body that ran inside guards. It is never thrown: evidence matters most when the body failed. */
export type GuardedOutcome<T> = { readonly value: T } | { readonly error: unknown };

/**
 * Enters guards in order, runs the body, and always leaves the guards in reverse order. The body receives the fingerprint that
 * the guard named `weights` saw; null without such a guard.
 *
 * @returns The evidence of the guards that were entered, in their order.
 */
export async function runGuarded<T>(
  guards: readonly Guard[],
  contextOf: (index: number) => GuardContext,
  body: (fingerprint: string | null) => Awaitable<T>,
): Promise<{ readonly outcome: GuardedOutcome<T>; readonly evidence: readonly Evidence[] }> {
  const entered: EnteredGuard[] = [];
  const evidence: Evidence[] = [];
  let outcome: GuardedOutcome<T>;
  try {
    let fingerprint: string | null = null;
    for (const [index, guard] of guards.entries()) {
      const enteredGuard = await enter(guard, contextOf(index));
      entered.push(enteredGuard);
      if (guard.name === "weights") fingerprint = enteredGuard.before;
    }
    outcome = { value: await body(fingerprint) };
  } catch (error) {
    outcome = { error };
  }
  for (let index = entered.length - 1; index >= 0; index--)
    evidence.unshift(await leave(guards[index]!, entered[index]!));
  return { outcome, evidence };
}

/**
 * Runs a hook inside the guards that are around hooks, synchronously unless the hook returns a promise.
 *
 * @param changed Receives the evidence of each guard that saw a change, once the hook is over.
 */
export function runHookGuarded<T>(
  guards: readonly Guard[],
  context: GuardContext,
  body: () => Awaitable<T>,
  changed: (evidence: Evidence) => void,
): Awaitable<GuardedOutcome<T>> {
  const entered: EnteredGuard[] = [];
  const end = (outcome: GuardedOutcome<T>) => {
    const evidence: Evidence[] = [];
    for (let index = entered.length - 1; index >= 0; index--)
      evidence.unshift(leaveAtOnce(guards[index]!, entered[index]!));
    for (const finding of evidence) if (finding.intact === false) changed(finding);
    return outcome;
  };
  let answer: Awaitable<T>;
  try {
    for (const guard of guards) entered.push(enterAtOnce(guard, context));
    answer = body();
  } catch (error) {
    return end({ error });
  }
  return isPromise(answer)
    ? answer.then(
        (value) => end({ value }),
        (error: unknown) => end({ error }),
      )
    : end({ value: answer });
}

function enterAtOnce(guard: Guard, context: GuardContext): EnteredGuard {
  const entered = enter(guard, context);
  if (isPromise(entered)) throw new Error(`guard "${guard.name}" returned a promise around a hook`);
  return entered;
}

function leaveAtOnce(guard: Guard, entered: EnteredGuard): Evidence {
  const evidence = leave(guard, entered);
  if (!isPromise(evidence)) return evidence;
  return notLeft(guard, entered, new Error("it returned a promise around a hook"));
}

function enter(guard: Guard, context: GuardContext): Awaitable<EnteredGuard> {
  const failed = (cause: unknown): never => {
    throw new Error(`guard "${guard.name}" could not be entered: ${errorMessage(cause)}`, { cause });
  };
  try {
    const entering = guard.enter(context);
    return isPromise(entering) ? entering.catch(failed) : entering;
  } catch (cause) {
    return failed(cause);
  }
}

function leave(guard: Guard, entered: EnteredGuard): Awaitable<Evidence> {
  const finished = (evidence: Evidence) => (guard.advisory ? { ...evidence, advisory: true } : evidence);
  const failed = (error: unknown) => notLeft(guard, entered, error);
  try {
    const leaving = entered.leave();
    return isPromise(leaving) ? leaving.then(finished, failed) : finished(leaving);
  } catch (error) {
    return failed(error);
  }
}

/** A guard that throws may not have restored training's state, so its evidence is "disturbed", not "not observed". */
const notLeft = ({ name, advisory }: Guard, { before }: EnteredGuard, error: unknown): Evidence => ({
  part: name,
  before,
  after: null,
  intact: false,
  note: `leaving failed: ${errorMessage(error)}`,
  ...(advisory && { advisory: true }),
});

/** Whether evidence breaks a receipt: a guard saw a disturbance that counts against the training. */
export function isBroken({ intact, advisory }: Evidence): boolean {
  return intact === false && advisory !== true;
}
