import { basename, dirname, join, relative } from "#platform";
import * as z from "zod";
import type { SupersededFile } from "@periodic-eval/contracts";
import { appendLines, writeFileAtomic } from "../files/atomic-file.ts";
import { storeError, type FileReader, type FileSystem } from "../files/file-system.ts";
import { runPaths, samplesPath } from "./layout.ts";
import { listIfPresent, readIfPresent, readLines } from "../files/read-file.ts";

/** A line of `superseded/index.jsonl`. If several lines name one file, the last one counts. */
const lineSchema = z.object({
  /** Relative to `superseded/`. */
  file: z.string(),
  /** Null if the file is not a snapshot. */
  key: z.object({ phase: z.string(), id: z.string(), step: z.number() }).nullable(),
  why: z.string(),
});
type SupersededLine = z.infer<typeof lineSchema>;

/**
 * Moves a snapshot's file and its rows to `superseded/`, under its phase, its name and the next free number. First copies the
 * rows and records the reason, then renames the snapshot, then removes the original rows. A crash in between leaves the
 * snapshot either in its place or complete in `superseded/`.
 */
export async function moveToSuperseded(
  runDir: string,
  path: string,
  target: { readonly folder: string; readonly name: string; readonly suffix: ".json" | ".damaged.json" },
  about: Omit<SupersededLine, "file">,
  fs: FileSystem,
): Promise<void> {
  const { superseded, supersededIndex } = runPaths(runDir);
  const folder = join(superseded, target.folder);
  try {
    await fs.makeFolder(folder);
    const number = await nextNumber(folder, target.name, fs);
    const to = join(folder, `${target.name}.${number}${target.suffix}`);
    const rows = await readIfPresent(samplesPath(path), fs);
    if (rows !== null) await writeFileAtomic(samplesPath(to), rows, fs);
    const line = JSON.stringify({ file: relative(superseded, to).replaceAll("\\", "/"), ...about });
    await appendLines(supersededIndex, [line], fs);
    await fs.rename(path, to);
    await fs.syncFolder(folder);
    await fs.syncFolder(dirname(path));
    // Rows that stay without their snapshot are a second copy that nobody reads.
    if (rows !== null) await fs.remove(samplesPath(path)).catch(() => undefined);
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

/** Returns the superseded snapshots of a run, by file name. */
export async function readSuperseded(runDir: string, fs: FileReader): Promise<readonly SupersededFile[]> {
  const { superseded, supersededIndex } = runPaths(runDir);
  const lines = new Map<string, SupersededLine>();
  for (const text of await readLines(supersededIndex, fs)) {
    try {
      const line = lineSchema.parse(JSON.parse(text));
      lines.set(line.file, line);
    } catch {
      // A damaged line loses a reason, not a snapshot.
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
    .map((file) => ({ file, key: lines.get(file)?.key ?? null, why: lines.get(file)?.why ?? null }));
}
