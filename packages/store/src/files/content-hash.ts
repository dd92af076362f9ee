import { createHash } from "#platform";
import { type Json, canonicalJson } from "@periodic-eval/contracts";

/** Returns the SHA-256 of the UTF-8 bytes of strings, one after the other, in hexadecimal. */
export const sha256 = (...texts: readonly string[]): string =>
  texts.reduce((hash, text) => hash.update(text), createHash("sha256")).digest("hex");

/** Returns the SHA-256 of a snapshot's canonical JSON without its field `sha256`. */
export function hashSnapshot(snapshot: object): string {
  const { sha256: _, ...content } = snapshot as Readonly<Record<string, Json>>;
  return sha256(canonicalJson(content));
}
