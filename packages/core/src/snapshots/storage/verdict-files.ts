import { join } from "node:path";
import type { Verdict } from "../../contracts/grading.ts";
import { isCacheable, type VerdictCache } from "../../grading/judge/verdict-cache.ts";
import { nodeFiles, type FileSystem } from "./files.ts";
import { readIfPresent, writeWhole } from "./atomic-file.ts";

/**
 * Verdicts kept in a folder, one file each, named by its key and written whole: processes may share it, and a file that
 * cannot be understood (torn, of another make) counts as none. The folder can be deleted at any time.
 *
 * @throws PeriodicEvalError `store`, from `get` and `set`, where the folder cannot be read or written.
 */
export function fileVerdictCache(folder: string, fs: FileSystem = nodeFiles): VerdictCache {
  const fileOf = (key: string) => {
    const name = key.replaceAll(/[^\w-]/g, "_");
    return { folder: join(folder, name.slice(-2)), name: `${name}.json` };
  };
  return {
    async get(key) {
      const file = fileOf(key);
      const text = await readIfPresent(join(file.folder, file.name), fs);
      if (text === null) return null;
      try {
        const { key: written, verdict } = JSON.parse(text) as { key: unknown; verdict: unknown };
        return written === key && isCacheable(verdict) ? verdict : null;
      } catch {
        return null;
      }
    },
    async set(key: string, verdict: Verdict) {
      const file = fileOf(key);
      await fs.makeFolder(file.folder);
      await writeWhole(join(file.folder, file.name), `${JSON.stringify({ key, verdict })}\n`, fs);
    },
  };
}
