import type { CallOptions, Grader, Verdict } from "@periodic-eval/core";
import {
  configError,
  errorMessage,
  frozenCopy,
  grouped,
  ownerOf,
  quoteValue,
  readVerdicts,
  resolvesWithin,
  runOwnedOnce,
  withOwnSignal,
  type Reporter,
} from "@periodic-eval/core/internal";

const defaultTimeoutSeconds = 600;
/** Maximum number of reasons for missing scores that a grader's warnings name. */
const maxReasons = 10;

export interface CustomGraderOptions {
  /** Names the grader in warnings: `preference concise, verifier`. */
  readonly where: string;
  readonly reporter: Reporter;
  /** Seconds that one call may take. Default: 600. */
  readonly timeoutSeconds?: number;
}

/**
 * Wraps a custom grader so that it can neither stop the training nor change its data. The grader receives frozen copies and a
 * separate abort signal. If it throws, exceeds the timeout or does not return one verdict per request, all verdicts are `error`
 * with the reason. Errors of promises and timers that it leaves behind become warnings.
 *
 * @throws PeriodicEvalError `config` if its name or fingerprint is not a string. `check` rethrows the errors of the grader's check.
 */
export function customGrader(grader: Grader, options: CustomGraderOptions): Grader {
  const { where, reporter, timeoutSeconds = defaultTimeoutSeconds } = options;
  const owner = ownerOf(where, reporter);
  const [name, fingerprint] = (["name", "fingerprint"] as const).map((key) => stringOf(grader, key, where));
  let isUnsettled = false;
  /** Reasons of missing scores that were reported: the same one may come back at every step, and one may quote the answer. */
  const reported = new Set<string>();

  function warnOfReasons(verdicts: readonly Verdict[]): void {
    const failed = verdicts.filter(({ status }) => status === "error");
    for (const [reason, { length }] of grouped(failed, ({ raw }) => raw ?? "no reason")) {
      if (reported.has(reason) || reported.size === maxReasons) continue;
      reported.add(reason);
      const last = reported.size === maxReasons ? "; further reasons are not reported" : "";
      reporter.warn(
        where,
        `${length} of ${verdicts.length} answers are not graded: ${reason} (reported once${last})`,
      );
    }
  }

  /** Calls the grader. After a timeout, further calls fail until the abandoned one settles. */
  async function call<T>(
    what: string,
    signal: AbortSignal,
    work: (own: CallOptions) => T,
  ): Promise<Awaited<T>> {
    if (isUnsettled) throw new Error(`an earlier call of ${what} has not settled`);
    const abandoned = new AbortController();
    const either = AbortSignal.any([signal, abandoned.signal]);
    const answer = runOwnedOnce(owner, () =>
      withOwnSignal(either, (own) => work(Object.freeze({ signal: own }))),
    );
    isUnsettled = true;
    const settled = answer.then(
      () => void (isUnsettled = false),
      () => void (isUnsettled = false),
    );
    const isSettled = await resolvesWithin(Promise.race([settled, abortOf(signal, answer)]), timeoutSeconds);
    signal.throwIfAborted();
    if (isSettled) return answer;
    abandoned.abort(new Error(`${what} was abandoned`));
    throw new Error(`${what} has not settled within ${timeoutSeconds} s`);
  }

  return {
    name: name!,
    fingerprint: fingerprint!,
    check: async ({ signal }) => {
      await call("check", signal, (own) => grader.check?.(own));
    },
    async grade(requests, { signal }) {
      const given = frozenCopy(requests);
      try {
        const returned = await call("grade", signal, (own) => grader.grade(given, own));
        const verdicts = readVerdicts({ name: name! }, returned, given.length).map(withReward);
        warnOfReasons(verdicts);
        return verdicts;
      } catch (error) {
        signal.throwIfAborted();
        const raw = errorMessage(error);
        reporter.warn(where, `${given.length} answers are not graded: ${raw}`);
        return given.map(() => ({ status: "error", raw }));
      }
    },
    dispose: async () => grader.dispose?.(),
  };
}

/** Resolves when a signal is aborted. Removes its listener when `until` settles. */
function abortOf(signal: AbortSignal, until: Promise<unknown>): Promise<void> {
  // A signal that is already aborted dispatches no event.
  if (signal.aborted) return Promise.resolve();
  const done = new AbortController();
  const end = () => done.abort();
  until.then(end, end);
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true, signal: done.signal }),
  );
}

function stringOf(grader: Grader, key: "name" | "fingerprint", where: string): string {
  const value: unknown = grader[key];
  if (typeof value === "string") return value;
  throw configError({
    where,
    got: `a grader whose ${key} is ${quoteValue(value)}`,
    expected: "a string",
    fix: `Give the grader a ${key}.`,
  });
}

/** Replaces a graded verdict without a valid reward by an error. */
function withReward(verdict: Verdict): Verdict {
  if (verdict.status !== "graded") return verdict;
  const { reward } = verdict.scores;
  if (reward !== undefined && reward >= 0 && reward <= 1) return verdict;
  return {
    status: "error",
    raw: `the grader returned a reward of ${quoteValue(reward)}, not from 0 to 1`,
  };
}
