import { jsonFault } from "@periodic-eval/contracts/options";

/** A named check of a conformance suite. */
export interface Check {
  /** Completes "it …". */
  readonly name: string;
  /** Rejects if the check fails. */
  readonly run: () => Promise<void>;
}

/** Throws unless a condition holds. `what` describes the condition. */
export function expectThat(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`expected that ${what}`);
}

/** Throws if two values differ as JSON, apart from the order of keys. */
export function expectEqual(got: unknown, expected: unknown, what: string): void {
  const [left, right] = [sorted(got), sorted(expected)];
  if (left !== right) throw new Error(`${what}: got ${shorten(left)}, expected ${shorten(right)}`);
}

/** Returns the error of work that throws or rejects. Throws if it does neither. */
export async function expectRejects(work: () => unknown, what: string): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error(`expected that ${what}`);
}

/** Throws if a value does not survive JSON. Properties that are undefined are accepted. */
export function expectJson(value: unknown, what: string): void {
  const fault = jsonFault(value);
  if (fault !== null) throw new Error(`${what}${fault.path}: JSON cannot represent ${fault.what}`);
}

/** Returns JSON with sorted keys, in which NaN and infinities differ from null. */
function sorted(value: unknown): string {
  const text = JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner === "number" && !Number.isFinite(inner)) return String(inner);
    if (typeof inner !== "object" || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
  return text ?? "undefined";
}

function shorten(text: string): string {
  return text.length > 400 ? `${text.slice(0, 397)}…` : text;
}

/**
 * Runs work while `Math.random` throws. TensorFlow.js draws dropout masks and shuffles from it, so a draw of a measurement would
 * change the training that follows.
 */
export async function withoutMathRandom<T>(work: () => T | Promise<T>): Promise<T> {
  const real = Math.random;
  Math.random = () => {
    throw new Error("expected that nothing is drawn from Math.random");
  };
  try {
    return await work();
  } finally {
    Math.random = real;
  }
}
