import { join } from "#platform";
import { type Verdict, isCacheable, type VerdictCache } from "@periodic-eval/contracts";
import { makeFolder, writeFileAtomic } from "../files/atomic-file.ts";
import { readIfPresent } from "../files/read-file.ts";

/**
 * Returns a verdict cache in a folder: one file per verdict, named by its key and written atomically. Several processes may
 * share the folder, and it can be deleted at any time. A file that is damaged or of another format counts as absent.
 *
 * @throws PeriodicEvalError `store`, from `get` and `set`, if the folder cannot be read or written.
 */
export function fileVerdictCache(folder: string): VerdictCache {
  const fileOf = (key: string) => {
    const name = key.replaceAll(/[^\w-]/g, "_");
    return { folder: join(folder, name.slice(-2)), name: `${name}.json` };
  };
  return {
    async get(key) {
      const file = fileOf(key);
      const text = await readIfPresent(join(file.folder, file.name));
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
      await makeFolder(file.folder);
      await writeFileAtomic(join(file.folder, file.name), `${JSON.stringify({ key, verdict })}\n`);
    },
  };
}
