import { isBadRow, type BadRow, type Fault } from "./bad-row.ts";

/** Returns a parsed row, or the bad row for a number in it that cannot be trained on. */
export function exact<T extends { readonly where: string }>(parsed: T | BadRow): T | BadRow {
  const fault = isBadRow(parsed) ? null : inexactPart(parsed);
  return fault === null ? parsed : { where: parsed.where, ...fault };
}

/**
 * Returns the fault of a row that holds a number which a template would not print as Python does: NaN, an infinite number, or
 * an integer beyond 2⁵³, which no JavaScript number holds exactly. Null if there is none.
 *
 * @param part A parsed row, so that columns that nobody reads do not count.
 */
function inexactPart(part: unknown, path = ""): Fault | null {
  if (typeof part === "number" || typeof part === "bigint") {
    if (typeof part === "number" && !Number.isFinite(part))
      return fault(path, String(part), "a finite number");
    const isExact = typeof part === "number" && (Number.isSafeInteger(part) || !Number.isInteger(part));
    return isExact ? null : fault(path, String(part), "an integer up to 2^53 - 1, or a string");
  }
  if (typeof part !== "object" || part === null || ArrayBuffer.isView(part)) return null;
  for (const [name, inner] of Object.entries(part)) {
    const at = Array.isArray(part) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    const inside = inexactPart(inner, at);
    if (inside !== null) return inside;
  }
  return null;
}

const fault = (path: string, got: string, expected: string): Fault => ({
  reason: "broken_content",
  got: `${path} ${got} instead of ${expected}`,
});
