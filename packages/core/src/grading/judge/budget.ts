import type { VerdictSpending } from "@periodic-eval/contracts";

/** The price of a million tokens, in one currency. */
export interface JudgePrice {
  readonly inputPerMillion: number;
  readonly outputPerMillion: number;
}

/** @param tokens The input and output tokens. */
export const costOf = (tokens: readonly [input: number, output: number], price: JudgePrice): number =>
  (tokens[0] * price.inputPerMillion + tokens[1] * price.outputPerMillion) / 1e6;

/** A reservation for one answer's calls. `settle` replaces it by what the calls used. */
export interface Grant {
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
  const held = { calls: 0, cost: 0 };
  let reached: string | null = null;
  let waiting: (() => void)[] = [];
  const overrun = (calls: number, cost: number): string | null => {
    if (caps.maxCalls !== null && used.calls + held.calls + calls > caps.maxCalls)
      return `maxCalls ${caps.maxCalls}`;
    // The sum of the same costs in another order can differ in the last bits.
    if (caps.maxCost !== null && used.cost + held.cost + cost > caps.maxCost * (1 + 1e-12))
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
        if (held.calls === 0) return (reached = over);
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
      const own = { calls, cost: mostCost };
      held.calls += calls;
      held.cost += mostCost;
      return {
        // The retry takes over the reservation of the failed call.
        again(cost) {
          const over = overrun(1, cost);
          if (over !== null) return over;
          for (const sum of [own, held]) {
            sum.calls += 1;
            sum.cost += cost;
          }
          return null;
        },
        settle(made) {
          held.calls -= own.calls;
          held.cost = held.calls === 0 ? 0 : held.cost - own.cost;
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
