import { basename, dirname, join, relative } from "node:path";
import type { FileReader, FileSystem } from "./files.ts";
import { runPaths, samplesPath } from "./layout.ts";
import type { SnapshotKey } from "../../contracts/snapshot.ts";
import { listIfPresent } from "./scan.ts";
import { appendLines, readIfPresent, readLines, storeError, writeWhole } from "./atomic-file.ts";

/** One line of `superseded/index.jsonl`. The last line about a file holds. */
export interface SetAside {
  /** Relative to `superseded/`. */
  readonly file: string;
  /** Null where the file is no snapshot. */
  readonly key: SnapshotKey | null;
  readonly why: string;
}

/**
 * Moves a snapshot's file and its rows into `superseded/`, under its phase and name and the next free number. The rows
 * are copied first and the reason noted; the rename of the snapshot is what counts; then the rows' first copy goes.
 * A death in between leaves the snapshot where it was, or set aside with all it had.
 */
export async function setAside(
  runDir: string,
  path: string,
  into: { readonly folder: string; readonly name: string; readonly suffix: ".json" | ".damaged.json" },
  about: Omit<SetAside, "file">,
  fs: FileSystem,
): Promise<void> {
  const { superseded, supersededIndex } = runPaths(runDir);
  const folder = join(superseded, into.folder);
  try {
    await fs.makeFolder(folder);
    const target = join(folder, `${into.name}.${await nextNumber(folder, into.name, fs)}${into.suffix}`);
    const rows = await readIfPresent(samplesPath(path), fs);
    if (rows !== null) await writeWhole(samplesPath(target), rows, fs);
    const line = JSON.stringify({ file: relative(superseded, target).replaceAll("\\", "/"), ...about });
    await appendLines(supersededIndex, [line], fs);
    await fs.rename(path, target);
    await fs.syncFolder(folder);
    await fs.syncFolder(dirname(path));
    if (rows !== null) await fs.remove(samplesPath(path)).catch(() => undefined); // a second copy, without its snapshot
  } catch (error) {
    throw storeError(path, error);
  }
}

async function nextNumber(folder: string, name: string, fs: FileSystem): Promise<number> {
  const taken = new Set((await listIfPresent(folder, fs)).map((entry) => entry.name));
  let number = 1;
  while (taken.has(`${name}.${number}.json`) || taken.has(`${name}.${number}.damaged.json`)) number++;
  return number;
}

/** What was set aside, by file name; the reason is null where the line that told it is lost. */
export async function readSetAside(
  runDir: string,
  fs: FileReader,
): Promise<
  readonly { readonly file: string; readonly key: SnapshotKey | null; readonly why: string | null }[]
> {
  const { superseded, supersededIndex } = runPaths(runDir);
  const told = new Map<string, SetAside>();
  for (const line of await readLines(supersededIndex, fs)) {
    try {
      const entry = JSON.parse(line) as SetAside;
      told.set(entry.file, entry);
    } catch {
      // A damaged line costs a reason, not the record.
    }
  }
  const files: string[] = [];
  for (const { name, isFolder } of await listIfPresent(superseded, fs)) {
    if (!isFolder) files.push(name);
    else
      files.push(
        ...(await listIfPresent(join(superseded, name), fs)).map((entry) => `${name}/${entry.name}`),
      );
  }
  return files
    .filter((file) => file.endsWith(".json") && !basename(file).startsWith("."))
    .sort()
    .map((file) => ({ file, key: told.get(file)?.key ?? null, why: told.get(file)?.why ?? null }));
}
