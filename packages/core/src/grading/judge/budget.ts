import type { VerdictSpending } from "../../contracts/grading.ts";
import type { Usage } from "../../contracts/model.ts";

/** What a million tokens cost, in any one currency. */
export interface JudgePrice {
  readonly inputPerMillion: number;
  readonly outputPerMillion: number;
}

/** What a judge was asked and cost. */
export interface JudgeSpending extends VerdictSpending {
  /** Times that the cache could not be read or written; the verdicts came all the same. */
  readonly cacheFailures: number;
}

export const costOf = ({ inputTokens, outputTokens }: Usage, price: JudgePrice): number =>
  (inputTokens * price.inputPerMillion + outputTokens * price.outputPerMillion) / 1e6;

/** Room for one answer's calls, held until it is settled by what they were. */
export interface Grant {
  /** Room for a call that is repeated, beside `cost` of the one that failed. Gives the cap's name and number where there is none. */
  again(cost: number): string | null;
  settle(used: Pick<VerdictSpending, "calls" | "cost">): void;
}

export interface JudgeBudget {
  /** Waits where only what is under way stands in the way. Gives the cap's name and number where it is reached. */
  take(calls: number, mostCost: number): Promise<Grant | string>;
}

/**
 * Caps that hold whatever is under way at once: an answer is asked only where its calls fit at the most they can cost.
 * Once a cap has refused one it refuses the rest.
 */
export function openBudget(caps: {
  readonly maxCalls: number | null;
  readonly maxCost: number | null;
}): JudgeBudget {
  const used = { calls: 0, cost: 0 };
  const held = { calls: 0, cost: 0 };
  let reached: string | null = null;
  let waiting: (() => void)[] = [];
  const overrun = (calls: number, cost: number): string | null => {
    if (caps.maxCalls !== null && used.calls + held.calls + calls > caps.maxCalls)
      return `maxCalls ${caps.maxCalls}`;
    // Sums of the same prices in another order differ in their last bits.
    if (caps.maxCost !== null && used.cost + held.cost + cost > caps.maxCost * (1 + 1e-12))
      return `maxCost ${caps.maxCost}`;
    return null;
  };
  return {
    async take(calls, mostCost) {
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
        // What the failed call held is the repeated one's now.
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
