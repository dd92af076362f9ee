import { subsetOrder } from "@periodic-eval/core/evaluations";

/** Returns the `size` prompts of a step. Each pass over all prompts has its own seeded order. */
export function promptsOf(
  prompts: readonly string[],
  step: number,
  size: number,
  seed: number,
): readonly string[] {
  const orders = new Map<number, readonly number[]>();
  return Array.from({ length: size }, (_, i) => {
    const place = step * size + i;
    const pass = Math.floor(place / prompts.length);
    const order = orders.get(pass) ?? subsetOrder(seed + pass, prompts.length);
    orders.set(pass, order);
    return prompts[order[place % prompts.length]!]!;
  });
}
