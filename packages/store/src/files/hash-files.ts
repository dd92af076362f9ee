import { createHash, createReadStream, join, readdir } from "#platform";
import { type Json, canonicalJson } from "@periodic-eval/contracts";

/** Returns the SHA-256 of the UTF-8 bytes of strings, one after the other, in hexadecimal. */
export const sha256 = (...texts: readonly string[]): string =>
  texts.reduce((hash, text) => hash.update(text), createHash("sha256")).digest("hex");

/** Returns the SHA-256 of a snapshot's canonical JSON without its field `sha256`. */
export function hashSnapshot(snapshot: object): string {
  const { sha256: _, ...content } = snapshot as Readonly<Record<string, Json>>;
  return sha256(canonicalJson(content));
}

/**
 * Returns the SHA-256 of the content of files, one after the other: `sha256:` and 64 hexadecimal digits. Reads them in pieces, so
 * that they can be larger than memory.
 *
 * @param start Content to hash before the first file.
 */
export async function hashFiles(paths: readonly string[], start = ""): Promise<string> {
  const hash = createHash("sha256").update(start);
  for (const path of paths)
    for await (const piece of createReadStream(path)) hash.update(piece as Uint8Array);
  return `sha256:${hash.digest("hex")}`;
}

/**
 * Returns the hash of a folder's weight files (`.safetensors`), in the order of their names; null without such files.
 *
 * @param start Content to hash before the first file.
 */
export async function hashWeightFiles(folder: string, start = ""): Promise<string | null> {
  const names = (await readdir(folder).catch((): string[] => [])).filter((name) =>
    name.endsWith(".safetensors"),
  );
  return names.length === 0
    ? null
    : hashFiles(
        names.toSorted().map((name) => join(folder, name)),
        start,
      );
}
