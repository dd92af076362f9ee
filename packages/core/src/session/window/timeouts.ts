import { type Awaitable, PeriodicEvalError } from "@periodic-eval/contracts";
import { resolvesWithin, startTimeout, workingSeconds } from "@periodic-eval/store";
import { isPromise } from "../../model/in-order.ts";
import type { Reporter } from "../records/reporter.ts";

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
