import type { Run } from "../run.ts";

/** Why the machine's memory does not suffice to measure; null where it does, or cannot be told. */
export function whyNoMemory({ options: { budget = {} } }: Run): string | null {
  const { minFreeBytes = null } = budget;
  if (minFreeBytes === null || typeof process === "undefined") return null;
  const free = (process as { availableMemory?: () => number }).availableMemory?.();
  if (free === undefined || free >= minFreeBytes) return null;
  return `${free} bytes of memory are free, less than the ${minFreeBytes} of budget.minFreeBytes`;
}
