/**
 * Freezes arrays and plain objects, and those inside them. All other objects (tensors, typed arrays, instances of classes) stay
 * as they are.
 */
export function deepFreeze<T>(value: T): T {
  if (!isPlain(value)) return value;
  for (const inner of Object.values(value)) if (typeof inner === "object") deepFreeze(inner);
  return Object.freeze(value);
}

/** Returns a frozen copy of arrays and plain objects, and of those inside them. All other objects are shared. */
export function frozenCopy<T>(value: T): T {
  if (!isPlain(value)) return value;
  const copy: unknown = Array.isArray(value)
    ? value.map(frozenCopy)
    : Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, frozenCopy(inner)]));
  return Object.freeze(copy as T);
}

function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
