import { createHash, createReadStream, join, readdir } from "#platform";

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

/** Returns the hash of a folder's weight files (`.safetensors`), in the order of their names; null without such files. */
export async function hashWeightFiles(folder: string): Promise<string | null> {
  const names = (await readdir(folder).catch((): string[] => [])).filter((name) =>
    name.endsWith(".safetensors"),
  );
  return names.length === 0 ? null : hashFiles(names.toSorted().map((name) => join(folder, name)));
}
