/**
 * Numbers that training made may differ by this share of their size, and by `smallest` near 0. The engine wasm gives the same
 * bits on AMD and Intel processors; another version of V8 may round `Math.exp` and its like to the neighbouring number.
 */
const [share, smallest] = [1e-4, 1e-6];

const fingerprint = /^pe128:[0-9a-f]{32}$/;

/**
 * Returns the places where two JSON values differ: in keys, in strings, or in numbers by more than the tolerance. Fingerprints
 * under a key `weights` need not be equal: one other bit of a trained weight changes them.
 */
export function differencesOf(expected: unknown, actual: unknown, path = "$"): readonly string[] {
  if (typeof expected === "number" && typeof actual === "number") {
    const tolerance = Math.max(smallest, share * Math.abs(expected));
    return Math.abs(actual - expected) <= tolerance ? [] : [`${path}: ${actual}, expected ${expected}`];
  }
  if (typeof expected === "string" && typeof actual === "string") {
    const areOfWeights =
      path.endsWith(".weights") && [expected, actual].every((one) => fingerprint.test(one));
    return expected === actual || areOfWeights ? [] : [`${path}: "${actual}", expected "${expected}"`];
  }
  if (!isObject(expected) || !isObject(actual))
    return expected === actual ? [] : [`${path}: ${String(actual)}, expected ${String(expected)}`];
  const [names, found] = [Object.keys(expected).toSorted(), Object.keys(actual).toSorted()];
  if (names.join() !== found.join() || Array.isArray(expected) !== Array.isArray(actual))
    return [`${path}: the keys ${found.join(", ")}, expected ${names.join(", ")}`];
  return names.flatMap((name) => differencesOf(expected[name], actual[name], `${path}.${name}`));
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
