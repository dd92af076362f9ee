import {
  type VerdictSpending,
  type CallOptions,
  type RequestEnded,
  type Usage,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { abortable, startTimeout } from "@periodic-eval/store";
import type { JudgeCall } from "./judge-method.ts";

/** Spending that calls are added to. */
export type Tally = { -readonly [Key in keyof VerdictSpending]: VerdictSpending[Key] };

export type JudgeCalls = ReturnType<typeof judgeCalls>;

/** @param total The spending of all calls of the judge. */
export function judgeCalls(
  where: string,
  timeoutSeconds: number,
  price: JudgePrice | null,
  maxOutputTokens: number,
  total: Tally,
) {
  /** Returns the maximum cost of a call: a token has at least one byte, and a chat template adds a few tokens. */
  const mostCost = (prompt: string): number => {
    if (price === null) return 0;
    const inputTokens = new TextEncoder().encode(prompt).length + 64;
    return costOf([inputTokens, maxOutputTokens], price);
  };

  /** Returns a function that runs calls and adds their requests to the tallies. */
  const runner =
    (outer: CallOptions, tally: Tally, again: Grant["again"]): JudgeCall =>
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
        const result = await withinTime(outer.signal, timeoutSeconds, late(where, timeoutSeconds), (signal) =>
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

/**
 * Runs work with its own signal, which aborts with the outer signal or at the timeout. It then rejects immediately, even if the
 * work ignores its signal.
 *
 * @param late Returns the error of the timeout.
 * @throws The outer signal's reason; the error of the timeout; the errors of `work`.
 */
export async function withinTime<T>(
  outer: AbortSignal,
  seconds: number,
  late: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  outer.throwIfAborted();
  const timeUp = new AbortController();
  // Node warns about a leak from the eleventh listener on one signal.
  const signal = AbortSignal.any([outer, timeUp.signal]);
  const stopTimeout = startTimeout(seconds, () => timeUp.abort(late()));
  try {
    return await abortable(signal, work(signal));
  } finally {
    stopTimeout();
  }
}

/** Returns the error of a judge that does not reply in time. */
export const late = (where: string, seconds: number) => () =>
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

/** The price of a million tokens, in one currency. */
export interface JudgePrice {
  readonly inputPerMillion: number;
  readonly outputPerMillion: number;
}

/** @param tokens The input and output tokens. */
const costOf = (tokens: readonly [input: number, output: number], price: JudgePrice): number =>
  (tokens[0] * price.inputPerMillion + tokens[1] * price.outputPerMillion) / 1e6;

/** A reservation for one answer's calls. `settle` replaces it by what the calls used. */
interface Grant {
  /** Reserves a retry, in addition to the failed call of that cost. Returns the reached cap (`maxCalls 5`), or null. */
  again(cost: number): string | null;
  settle(used: Pick<VerdictSpending, "calls" | "cost">): void;
}

export type JudgeBudget = ReturnType<typeof openBudget>;

/**
 * Returns a budget whose caps hold under concurrency: an answer is judged only if its calls fit at their maximum cost. After a
 * cap has rejected one answer, it rejects all later ones.
 */
export function openBudget(caps: { readonly maxCalls: number | null; readonly maxCost: number | null }) {
  const used = { calls: 0, cost: 0 };
  const reserved = { calls: 0, cost: 0 };
  let reached: string | null = null;
  let waiting: (() => void)[] = [];
  const overrun = (calls: number, cost: number): string | null => {
    if (caps.maxCalls !== null && used.calls + reserved.calls + calls > caps.maxCalls)
      return `maxCalls ${caps.maxCalls}`;
    // The sum of the same costs in another order can differ in the last bits.
    if (caps.maxCost !== null && used.cost + reserved.cost + cost > caps.maxCost * (1 + 1e-12))
      return `maxCost ${caps.maxCost}`;
    return null;
  };
  return {
    /** Reserves calls; waits if only unsettled reservations prevent it. Returns the reached cap (`maxCalls 5`) instead. */
    async take(calls: number, mostCost: number): Promise<Grant | string> {
      for (;;) {
        if (reached !== null) return reached;
        const over = overrun(calls, mostCost);
        if (over === null) break;
        if (reserved.calls === 0) return (reached = over);
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
      const reservation = { calls, cost: mostCost };
      reserved.calls += calls;
      reserved.cost += mostCost;
      return {
        // The retry takes over the reservation of the failed call.
        again(cost) {
          const over = overrun(1, cost);
          if (over !== null) return over;
          for (const sum of [reservation, reserved]) {
            sum.calls += 1;
            sum.cost += cost;
          }
          return null;
        },
        settle(made) {
          reserved.calls -= reservation.calls;
          reserved.cost = reserved.calls === 0 ? 0 : reserved.cost - reservation.cost;
          used.calls += made.calls;
          used.cost += made.cost ?? 0;
          const woken = waiting;
          waiting = [];
          for (const wake of woken) wake();
        },
      };
    },
  };
}
