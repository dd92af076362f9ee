import { jsonFault } from "../internal/json.ts";

/** One named check of a conformance suite; `run` rejects where it fails. */
export interface Check {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/** Throws where a check does not hold. */
export function expectThat(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`not so: ${what}`);
}

/** Throws where two values differ as JSON; the order of keys does not count. */
export function expectEqual(got: unknown, expected: unknown, what: string): void {
  const [left, right] = [sorted(got), sorted(expected)];
  if (left !== right) throw new Error(`${what}: got ${shorten(left)}, expected ${shorten(right)}`);
}

/** Throws where a promise does not reject. Returns what it rejected with. */
export async function expectRejects(work: () => unknown, what: string): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error(`not so: ${what}`);
}

/** Throws where a value would come back from JSON as another one; an object's undefined fields may get lost. */
export function expectJson(value: unknown, what: string): void {
  const fault = jsonFault(value);
  if (fault !== null) throw new Error(`${what}${fault.path}: JSON cannot hold ${fault.what}`);
}

/** A number as JSON would give it back, told apart from null: NaN and infinities stay what they are. */
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
