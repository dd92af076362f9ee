import { isBadRow, type BadRow, type Fault } from "./bad-row.ts";

/** Returns a parsed row, or the bad row for NaN or an infinite number in it, which no template prints as Python does. */
export function onlyFinite<T extends { readonly where: string }>(parsed: T | BadRow): T | BadRow {
  const fault = isBadRow(parsed) ? null : infinitePart(parsed);
  return fault === null ? parsed : { where: parsed.where, ...fault };
}

/** @param part A parsed row, so that columns that nobody reads do not count. */
function infinitePart(part: unknown, path = ""): Fault | null {
  if (typeof part === "number" && !Number.isFinite(part))
    return { reason: "broken_content", got: `${path} ${part} instead of a finite number` };
  if (typeof part !== "object" || part === null || ArrayBuffer.isView(part)) return null;
  for (const [name, inner] of Object.entries(part)) {
    const at = Array.isArray(part) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    const inside = infinitePart(inner, at);
    if (inside !== null) return inside;
  }
  return null;
}
