import {
  type EnteredGuard,
  type Guard,
  type GuardContext,
  type Awaitable,
  type SessionEvent,
  type Evidence,
  type Snapshot,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { resolvesWithin, startTimeout, workingSeconds } from "@periodic-eval/store";
import { isPromise } from "../../model/event-loop.ts";
import type { Reporter } from "../records/new-snapshot.ts";
import type { SnapshotWriter } from "../records/snapshot-writer.ts";

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
      const one = await enter(guard, contextOf(index));
      entered.push(one);
      if (guard.name === "weights") fingerprint = one.before;
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
    for (const one of evidence) if (one.intact === false) changed(one);
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

/** Collects what guards saw change around hooks. The next snapshot takes it; after the last one, that one. */
export class Disturbances {
  readonly #reporter: WindowReporter;
  readonly #evidence = new Map<string, Evidence>();
  /** Callback, hook and guard of each change that was reported. */
  readonly #reported = new Set<string>();

  constructor(reporter: WindowReporter) {
    this.#reporter = reporter;
  }

  /**
   * Adds a change, and warns once: a hook usually repeats at every step what it did at the first.
   *
   * @param callback Names the callback: `callback "em"`.
   */
  add(callback: string, hook: string, step: number, change: Evidence): void {
    const by = `${hook} of ${callback} at step ${step}`;
    // For a leak it does not matter which hook leaks.
    const key = `${change.part} in ${change.advisory === true ? "" : hook} of ${callback}`;
    const isFirst = !this.#reported.has(key);
    this.#reported.add(key);
    if (!this.#evidence.has(key)) {
      const note = [change.note, `by ${by}`].filter(Boolean).join("; ");
      this.#evidence.set(key, { ...change, note });
    }
    if (isBroken(change)) return reportDisturbance(this.#reporter, change, by, isFirst);
    if (!isFirst) return;
    const message = `saw a change by ${by} (reported once): ${describeChange(change)}`;
    this.#reporter.warn(`guard "${change.part}"`, message);
  }

  /** Returns and forgets the changes since the last snapshot. */
  take(): readonly Evidence[] {
    const changes = [...this.#evidence.values()];
    this.#evidence.clear();
    return changes;
  }

  /** Adds what no snapshot has taken to the last snapshot of the phase, if it shows that training was disturbed. */
  async recordRest(last: Snapshot | undefined, writer: SnapshotWriter): Promise<void> {
    const changes = this.take();
    if (last === undefined || !changes.some(isBroken)) return;
    const rows = await writer.rowsOrWarn(last, "so it lacks what hooks changed after it");
    if (rows !== null) await writer.commit({ ...last, receipt: [...last.receipt, ...changes] }, rows);
  }
}

/** Seconds between two reports that user code has not settled. */
const reportSeconds = 60;

/** The most seconds that abandoned code gets to react to its signal, so that an engine ends its batch inside the guards. */
const releaseSeconds = 10;

/** User code that the session waits for. */
interface AwaitedWork {
  /** Names the callback, in warnings: `callback "em"`. */
  readonly where: string;
  /** Names the work: `onStepEnd`. Together with `where` it is unique in a session. */
  readonly what: string;
  /** When the work last showed that it makes progress, on `workingSeconds()`. */
  readonly heartbeat: { at: number };
  /** Called when the work is abandoned, to abort its signal. */
  readonly abandon?: () => void;
}

/** How long a session waits for hooks and evaluations. Work that is abandoned is not started again before it settles. */
export class Timeouts {
  readonly #seconds: number;
  readonly #reporter: Pick<Reporter, "warn">;
  readonly #unsettled = new Set<string>();

  constructor(seconds: number, reporter: Pick<Reporter, "warn">) {
    this.#seconds = seconds;
    this.#reporter = reporter;
  }

  get hasUnsettled(): boolean {
    return this.#unsettled.size > 0;
  }

  /** Whether abandoned work of this name has not settled yet. */
  isUnsettled(where: string, what: string): boolean {
    return this.#unsettled.has(keyOf(where, what));
  }

  /**
   * Starts work and waits for it.
   *
   * @throws PeriodicEvalError `deadline` if the work shows no progress for too long, or if an earlier call of it has not
   *   settled yet.
   */
  run<T>(work: AwaitedWork, begin: () => Awaitable<T>): Awaitable<T> {
    const { where, what } = work;
    if (this.isUnsettled(where, what))
      throw stuck(where, `a new call of ${what} while an abandoned one has not settled`);
    const answer = begin();
    return isPromise(answer) ? this.#settle(work, answer) : answer;
  }

  async #settle<T>(work: AwaitedWork, answer: Promise<T>): Promise<T> {
    const key = keyOf(work.where, work.what);
    let stopTimeout = () => {};
    work.heartbeat.at = workingSeconds();
    const timeUp = new Promise<void>((resolve) => {
      let reportedAt = work.heartbeat.at;
      let [dueAt, delay] = [Number.POSITIVE_INFINITY, 0];
      const check = () => {
        const now = workingSeconds();
        // If something blocked the process for long, the work could not go on, or did the blocking.
        if (now - dueAt > delay / 2) work.heartbeat.at = now;
        const left = this.#seconds - (now - work.heartbeat.at);
        if (left <= 0) return resolve();
        const next = Math.max(reportedAt, work.heartbeat.at) + reportSeconds - now;
        if (next <= 0) {
          reportedAt = now;
          this.#report(work, now, left);
        }
        delay = Math.min(left, next <= 0 ? reportSeconds : next);
        dueAt = now + delay;
        stopTimeout = startTimeout(delay, check);
      };
      check();
    });
    const settled = Promise.resolve(answer).then((value) => ({ value }));
    const first = await Promise.race([settled, timeUp]).finally(() => stopTimeout());
    if (first !== undefined) return first.value;
    this.#unsettled.add(key);
    const done = settled.catch(() => undefined).then(() => void this.#unsettled.delete(key));
    work.abandon?.();
    await resolvesWithin(done, Math.min(this.#seconds, releaseSeconds));
    const got = `${work.what}, which has not settled and showed no progress for ${this.#seconds} s`;
    throw stuck(work.where, got);
  }

  #report({ where, what, heartbeat }: AwaitedWork, now: number, left: number): void {
    const minutes = (seconds: number) => `${Math.round(seconds / 60)} min`;
    const message = `${what} has not settled and showed no progress for ${minutes(now - heartbeat.at)}`;
    const end = Number.isFinite(left) ? `; it is abandoned in ${minutes(left)}` : "";
    this.#reporter.warn(where, message + end);
  }
}

const keyOf = (where: string, what: string): string => `${what} of ${where}`;

const stuck = (where: string, got: string) =>
  new PeriodicEvalError({
    code: "deadline",
    where,
    got,
    expected: "code that settles",
    fix: "Find the promise that it waits for. If it needs longer, report progress or raise the session option patienceSeconds.",
  });
