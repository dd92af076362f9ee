import { dirname } from "#platform";
import { configError } from "@periodic-eval/contracts/options";
import { writeFileAtomic } from "./atomic-file.ts";
import { readIfPresent } from "./read-file.ts";
import { nodeFiles } from "./file-system.ts";

/**
 * Writes files and their folders. A file with the same content stays as it is. Writes none if one exists with other content.
 *
 * @param contents Content by path.
 * @param where The option that names the folder, for errors.
 * @throws PeriodicEvalError `config` for a file with other content; `store` for one that cannot be written.
 */
export async function writeOnce(contents: ReadonlyMap<string, string>, where: string): Promise<void> {
  const missing: (readonly [path: string, content: string])[] = [];
  for (const [path, content] of contents) {
    const present = await readIfPresent(path);
    if (present === null) missing.push([path, content]);
    else if (present !== content)
      throw configError({
        where,
        got: `${path}, which exists with other content`,
        expected: "a free name",
        fix: "Name another folder, or move that file away.",
      });
  }
  for (const [path, content] of missing) {
    await nodeFiles.makeFolder(dirname(path));
    await writeFileAtomic(path, content);
  }
}
