import { createHash, createReadStream } from "#platform";

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
