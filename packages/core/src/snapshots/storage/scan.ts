import { join, relative } from "node:path";
import { PeriodicEvalError } from "../../errors.ts";
import { errnoOf, type FileReader } from "./files.ts";
import { looksLikeSnapshot } from "./layout.ts";
import { inRunOrder, keyText } from "../order.ts";
import { parseSnapshotText } from "../parse-snapshot.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { storeError } from "./atomic-file.ts";

/** A file of a run that could not be used. */
export interface RunProblem {
  /** Relative to `periodic_eval/`. */
  readonly file: string;
  readonly message: string;
  /** Whether the file is no snapshot at all (as opposed to one too many, or one that could not be read now). */
  readonly invalid: boolean;
}

export interface FoundSnapshot {
  readonly path: string;
  readonly snapshot: Snapshot;
}

/** Every snapshot under `periodic_eval/`, in run order, whatever the layout; and what looked like one and is none. */
export async function scanSnapshots(
  root: string,
  fs: FileReader,
): Promise<{ readonly found: readonly FoundSnapshot[]; readonly problems: readonly RunProblem[] }> {
  const byKey = new Map<string, FoundSnapshot>();
  const problems: RunProblem[] = [];
  for (const path of await snapshotFiles(root, fs)) {
    const file = relative(root, path);
    try {
      const snapshot = parseSnapshotText(await fs.read(path), path);
      const earlier = byKey.get(keyText(snapshot));
      if (earlier === undefined) byKey.set(keyText(snapshot), { path, snapshot });
      else
        problems.push({
          file,
          message: `the same phase, id and step as ${relative(root, earlier.path)}`,
          invalid: false,
        });
    } catch (error) {
      if (errnoOf(error) === "ENOENT") continue; // moved while we looked
      const known = PeriodicEvalError.is(error);
      problems.push({ file, message: known ? error.message : String(error), invalid: known });
    }
  }
  const ordered = inRunOrder([...byKey.values()].map(({ snapshot }) => snapshot));
  return { found: ordered.map((snapshot) => byKey.get(keyText(snapshot))!), problems };
}

async function snapshotFiles(root: string, fs: FileReader): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const { name, isFolder } of await listIfPresent(root, fs)) {
    if (!isFolder && looksLikeSnapshot(name)) paths.push(join(root, name));
    if (!isFolder || name === "superseded" || name.startsWith(".")) continue;
    const inside = await listIfPresent(join(root, name), fs);
    paths.push(
      ...inside
        .filter((file) => !file.isFolder && looksLikeSnapshot(file.name))
        .map((file) => join(root, name, file.name)),
    );
  }
  return paths.sort();
}

/** What a folder holds; nothing where there is no folder. */
export async function listIfPresent(folder: string, fs: FileReader): ReturnType<FileReader["list"]> {
  try {
    return await fs.list(folder);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return [];
    throw storeError(folder, error);
  }
}
