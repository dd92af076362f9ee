import { availableMemory } from "../../internal/available-memory.ts";

/** Returns why the machine has too little memory to measure; null if it has enough or the amount is unknown. */
export function describeMissingMemory(minFreeBytes: number | null): string | null {
  if (minFreeBytes === null) return null;
  const free = availableMemory();
  if (free === null || free >= minFreeBytes) return null;
  return `${free} bytes of memory are free, less than the ${minFreeBytes} of budget.minFreeBytes`;
}
