import type { CallOptions, RequestEnded, Usage } from "../../contracts/model.ts";
import type { VerdictSpending } from "../../contracts/grading.ts";
import { costOf, type Grant, type JudgePrice } from "./budget.ts";
import type { JudgeCall } from "./method.ts";
import { withinTime, type AbortRelay } from "./timeout.ts";

/** Spending that calls are added to. */
export type Tally = { -readonly [Key in keyof VerdictSpending]: VerdictSpending[Key] };

export interface JudgeCallsOptions {
  /** Names the judge in errors. */
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
  /** The spending of this answer. */
  readonly tally: Tally;
  readonly again: Grant["again"];
}

export interface JudgeCalls {
  /** Returns the maximum cost of a call: a token has at least one byte, and a chat template adds a few tokens. */
  mostCost(prompt: string): number;
  /** Returns a function that runs calls and adds their requests to the tallies. */
  runner(call: RunningCall): JudgeCall;
}

export function judgeCalls({
  where,
  timeoutSeconds,
  price,
  maxOutputTokens,
  total,
}: JudgeCallsOptions): JudgeCalls {
  const mostCost = (prompt: string): number => {
    if (price === null) return 0;
    const inputTokens = new TextEncoder().encode(prompt).length + 64;
    return costOf({ inputTokens, outputTokens: maxOutputTokens }, price);
  };

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
        if (usage !== undefined && price !== null) last.cost = costOf(usage, price);
        const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
        for (const sum of [tally, total]) {
          sum.calls += requests.length;
          sum.inputTokens += inputTokens;
          sum.outputTokens += outputTokens;
          if (sum.cost !== null) sum.cost += requests.reduce((all, { cost }) => all + cost, 0);
        }
      }
    };

  return { mostCost, runner };
}
