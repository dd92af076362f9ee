import type { CallOptions, Grader, Verdict } from "@periodic-eval/core";
import { configError, errorMessage, quoteValue } from "@periodic-eval/contracts/options";
import { grouped } from "@periodic-eval/contracts";
import { readVerdicts } from "@periodic-eval/core/grading";
import { abortable, startTimeout } from "@periodic-eval/store";
import type { OnWarning } from "./warnings.ts";

const defaultTimeoutSeconds = 600;
/** Maximum number of reasons for missing scores that a grader's warnings name. */
const maxReasons = 10;

export interface CustomGraderOptions {
  /** Names the grader in warnings: `preference concise, verifier`. */
  readonly where: string;
  readonly onWarning: OnWarning;
  /** Seconds that one call may take. Default: 600. */
  readonly timeoutSeconds?: number;
}

/**
 * Wraps a custom grader so that it cannot stop the training. If it throws, exceeds the timeout or does not return one verdict per
 * request, all verdicts are `error` with the reason.
 *
 * @throws PeriodicEvalError `config` if its name or fingerprint is not a string. `check` rethrows the errors of the grader's check.
 */
export function customGrader(grader: Grader, options: CustomGraderOptions): Grader {
  const { where, onWarning, timeoutSeconds = defaultTimeoutSeconds } = options;
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
      onWarning(
        `${where}: ${length} of ${verdicts.length} answers are not graded: ${reason} (reported once${last})`,
      );
    }
  }

  /** Calls the grader. After a timeout, further calls fail until the abandoned one settles. */
  async function call<T>(
    what: string,
    signal: AbortSignal,
    work: (options: CallOptions) => T | PromiseLike<T>,
  ): Promise<T> {
    if (isUnsettled) throw new Error(`an earlier call of ${what} has not settled`);
    signal.throwIfAborted();
    const timeout = new AbortController();
    const eitherSignal = AbortSignal.any([signal, timeout.signal]);
    const stopTimeout = startTimeout(timeoutSeconds, () =>
      timeout.abort(new Error(`${what} has not settled within ${timeoutSeconds} s`)),
    );
    isUnsettled = true;
    const answer = (async () => work({ signal: eitherSignal }))().finally(() => (isUnsettled = false));
    return abortable(eitherSignal, answer).finally(stopTimeout);
  }

  return {
    name: name!,
    fingerprint: fingerprint!,
    check: async ({ signal }) => {
      await call("check", signal, (callOptions) => grader.check?.(callOptions));
    },
    async grade(requests, { signal }) {
      try {
        const returned = await call("grade", signal, (callOptions) => grader.grade(requests, callOptions));
        const verdicts = readVerdicts({ name: name! }, returned, requests.length).map(withReward);
        warnOfReasons(verdicts);
        return verdicts;
      } catch (error) {
        signal.throwIfAborted();
        const raw = errorMessage(error);
        onWarning(`${where}: ${requests.length} answers are not graded: ${raw}`);
        return requests.map(() => ({ status: "error", raw }));
      }
    },
    dispose: async () => grader.dispose?.(),
  };
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
