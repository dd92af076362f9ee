import { join, relative } from "node:path";
import type { RunProblem } from "../../contracts/run-record.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { parseSnapshotText } from "../parse-snapshot.ts";
import { inRunOrder, keyText } from "../run-order.ts";
import { errnoOf, type FileReader } from "./file-system.ts";
import { looksLikeSnapshot } from "./layout.ts";
import { listIfPresent } from "./read-file.ts";

export interface FoundSnapshot {
  readonly path: string;
  readonly snapshot: Snapshot;
}

/** Reads all snapshots under `periodic_eval/`, in either layout. `found` is in run order. */
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
      if (errnoOf(error) === "ENOENT") continue; // moved since the folder was listed
      const isInvalid = PeriodicEvalError.is(error);
      problems.push({ file, message: isInvalid ? error.message : String(error), invalid: isInvalid });
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
