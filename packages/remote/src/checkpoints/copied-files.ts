import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { isRead } from "./checkpoint-folder.ts";

const blockBytes = 4096;
/** Programs that copy a file in parts use parts of at least 5 MiB (S3), mostly 8 MiB or more. */
const mostBetweenBlocks = 4 * 1024 * 1024;
/** Blocks of a short file that are looked at. */
const blocksPerFile = 256;
/** The last bytes of a file, which programs write last. */
const endBytes = 8;

/**
 * Returns why a complete checkpoint may still be copied; null if nothing suggests it.
 *
 * - A file that is read ends in zeros or has a block of them: a program may have reserved its size, which it fills later. Weights
 *   may have such blocks. Looks at one block in 4 MiB, and at 256 of a shorter file.
 * - A file has a name that programs use until a copy is whole.
 */
export async function signOfCopying(path: string): Promise<string | null> {
  const names = await readdir(path);
  const temporary = names.find((name) => !isRead(name) && temporaryName.test(name));
  if (temporary !== undefined) return `the temporary file ${temporary}`;
  for (const name of names.filter(isRead)) if (await fileHasZeros(join(path, name))) return "blocks of zeros";
  return null;
}

/** Such as `.config.json.Xy12ab` (rsync), `config.json.1a2b3c4d` (aws s3), `config.json.1a2b3c4d.partial` (rclone). */
const temporaryName =
  /\.(safetensors|bin|json|jinja|model|txt|pt|pth)[._-]\w+|\.(part|partial|tmp|temp|incomplete)$/i;

async function fileHasZeros(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const isZero = async (at: number, length: number) => {
      const { buffer } = await file.read(Buffer.alloc(length), 0, length, at);
      return buffer.every((byte) => byte === 0);
    };
    if (size < endBytes) return false;
    if (await isZero(size - endBytes, endBytes)) return true;
    const step = Math.min(mostBetweenBlocks, Math.max(blockBytes, Math.floor(size / blocksPerFile)));
    for (let at = 0; at + blockBytes <= size; at += step) if (await isZero(at, blockBytes)) return true;
    return false;
  } finally {
    await file.close();
  }
}
