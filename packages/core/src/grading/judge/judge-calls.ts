import { startTimeout } from "@periodic-eval/store";
import {
  type VerdictSpending,
  type CallOptions,
  type RequestEnded,
  type Usage,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { costOf, type Grant, type JudgePrice } from "./budget.ts";
import type { JudgeCall } from "./method.ts";

/** Spending that calls are added to. */
export type Tally = { -readonly [Key in keyof VerdictSpending]: VerdictSpending[Key] };

export interface JudgeCallsOptions {
  readonly where: string;
  readonly timeoutSeconds: number;
  readonly price: JudgePrice | null;
  readonly maxOutputTokens: number;
  /** The spending of all calls of the judge. */
  readonly total: Tally;
}

export interface RunningCall {
  readonly outer: CallOptions;
  readonly relay: AbortRelay;
  readonly tally: Tally;
  readonly again: Grant["again"];
}

export type JudgeCalls = ReturnType<typeof judgeCalls>;

export function judgeCalls({ where, timeoutSeconds, price, maxOutputTokens, total }: JudgeCallsOptions) {
  /** Returns the maximum cost of a call: a token has at least one byte, and a chat template adds a few tokens. */
  const mostCost = (prompt: string): number => {
    if (price === null) return 0;
    const inputTokens = new TextEncoder().encode(prompt).length + 64;
    return costOf([inputTokens, maxOutputTokens], price);
  };

  /** Returns a function that runs calls and adds their requests to the tallies. */
  const runner =
    ({ outer, relay, tally, again }: RunningCall): JudgeCall =>
    async (prompt, work, usageOf) => {
      // A request of unknown usage counts at its maximum cost.
      const requests: { cost: number }[] = [];
      const begin = () => {
        const request = { cost: mostCost(prompt) };
        requests.push(request);
        return request;
      };
      const beforeRequest = (signal: AbortSignal): RequestEnded => {
        signal.throwIfAborted();
        const failed = requests.at(-1);
        const reached = failed === undefined ? null : again(failed.cost);
        if (reached !== null) throw new Error(`not asked again: ${reached} is reached`);
        const request = begin();
        return (mayBeBilled) => {
          if (!mayBeBilled) request.cost = 0;
        };
      };
      let usage: Usage | undefined;
      try {
        const result = await withinTime(where, timeoutSeconds, relay, (signal) =>
          work({ ...outer, signal, beforeRequest: () => beforeRequest(signal) }),
        );
        usage = usageOf?.(result);
        return result;
      } finally {
        // A model in memory reports no requests.
        const last = requests.at(-1) ?? begin();
        const [inputTokens, outputTokens] = [countOf(usage?.inputTokens), countOf(usage?.outputTokens)];
        if (inputTokens !== null && outputTokens !== null && price !== null)
          last.cost = costOf([inputTokens, outputTokens], price);
        for (const sum of [tally, total]) {
          sum.calls += requests.length;
          sum.inputTokens += inputTokens ?? 0;
          sum.outputTokens += outputTokens ?? 0;
          if (sum.cost !== null) sum.cost += requests.reduce((all, { cost }) => all + cost, 0);
        }
      }
    };

  return { mostCost, runner };
}

/** Forwards one signal's abort to many calls through one listener: Node warns about a leak from the eleventh listener on. */
export interface AbortRelay {
  readonly signal: AbortSignal;
  readonly stops: Set<(reason: unknown) => void>;
  close(): void;
}

export function abortRelay(signal: AbortSignal): AbortRelay {
  const stops = new Set<(reason: unknown) => void>();
  const onAbort = () => {
    for (const stop of stops) stop(signal.reason);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  return { signal, stops, close: () => signal.removeEventListener("abort", onAbort) };
}

/**
 * Runs work with its own signal, which aborts with the outer signal or at the timeout. It then rejects immediately, even if the
 * work ignores its signal.
 *
 * @throws The outer signal's reason; PeriodicEvalError `deadline` at the timeout; the errors of `work`.
 */
export async function withinTime<T>(
  where: string,
  seconds: number,
  { signal, stops }: AbortRelay,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const own = new AbortController();
  let stopTimeout: () => void;
  let stop: (reason: unknown) => void;
  const stopped = new Promise<never>((_, reject) => {
    stop = (reason) => {
      reject(reason);
      own.abort(reason);
    };
    stops.add(stop);
    stopTimeout = startTimeout(seconds, () => stop(timeoutError(where, seconds)));
  });
  try {
    return await Promise.race([work(own.signal), stopped]);
  } finally {
    stopTimeout!();
    stops.delete(stop!);
  }
}

const timeoutError = (where: string, seconds: number) =>
  new PeriodicEvalError({
    code: "deadline",
    where,
    got: `no reply within ${seconds} s`,
    expected: "a reply",
    fix: "Raise timeoutSeconds, or lower concurrency.",
  });

/** Returns a number of tokens; null for one that is unknown or no number of tokens, which must not lower the cost. */
const countOf = (tokens: number | null | undefined): number | null =>
  typeof tokens === "number" && Number.isFinite(tokens) && tokens >= 0 ? tokens : null;
