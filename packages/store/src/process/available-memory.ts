/** Returns the bytes that this process can still use; null outside Node. */
export function availableMemory(): number | null {
  if (typeof process === "undefined") return null;
  return (process as { availableMemory?: () => number }).availableMemory?.() ?? null;
}
