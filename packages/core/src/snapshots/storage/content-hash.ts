import { createHash } from "#platform";
import type { Json } from "../../contracts/json.ts";
import { canonicalJson } from "../../random/hash.ts";

/** Returns the SHA-256 of a string's UTF-8 bytes, in hexadecimal. */
export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Returns the SHA-256 of a snapshot's canonical JSON without its field `sha256`. */
export function hashSnapshot(snapshot: object): string {
  const { sha256: _, ...content } = snapshot as Readonly<Record<string, Json>>;
  return sha256(canonicalJson(content));
}
