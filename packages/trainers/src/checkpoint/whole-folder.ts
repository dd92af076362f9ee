import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { storeError, syncFolder } from "@periodic-eval/core/snapshots";

/** What is being written, what stood in its place, and what is being removed. */
const temporary = /^\.(.+)\.(draft|old|removed)$/;
const beside = (path: string, kind: "draft" | "old" | "removed") =>
  join(dirname(path), `.${basename(path)}.${kind}`);

/**
 * Writes a folder so that a reader sees all of it or nothing, whatever dies when: a draft beside it, every file synced,
 * renamed, its parent synced. A folder that stood there is removed last; where a kill came while neither had the name,
 * `putBackFolders` gives it the name again, and so does the next write.
 *
 * @throws PeriodicEvalError `store`; the draft is then gone and what stood there stands.
 */
export async function writeWholeFolder(path: string, fill: (draft: string) => Promise<void>): Promise<void> {
  const parent = dirname(path);
  const [draft, old] = [beside(path, "draft"), beside(path, "old")];
  try {
    await putBack(path);
    await rm(draft, { recursive: true, force: true });
    await rm(old, { recursive: true, force: true });
    await mkdir(draft, { recursive: true });
    await fill(draft);
    for (const file of await filesIn(draft)) await syncFile(join(draft, file));
    await syncFolder(draft);
    if (await exists(path)) await rename(path, old);
    await rename(draft, path);
    await syncFolder(parent);
    await rm(old, { recursive: true, force: true });
  } catch (cause) {
    await rm(draft, { recursive: true, force: true }).catch(() => undefined);
    await putBack(path).catch(() => undefined);
    throw storeError(path, cause, "a written checkpoint");
  }
}

/** No folder can be renamed to a name that another has: between two renames neither has it, and the old one is whole. */
async function putBack(path: string): Promise<void> {
  const old = beside(path, "old");
  if (!(await exists(path)) && (await exists(old))) await rename(old, path);
}

/** Gives folders back their names that a kill in the middle of `writeWholeFolder` left without. */
export async function putBackFolders(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [] as string[])) {
    const [, of, kind] = temporary.exec(name) ?? [];
    if (kind === "old") await putBack(join(folder, of!));
  }
}

/** Removes a folder so that no reader sees a part of it. */
export async function removeWholeFolder(path: string): Promise<void> {
  const removed = beside(path, "removed");
  // Once the name is free, what once stood there would be put back.
  await rm(beside(path, "old"), { recursive: true, force: true });
  await rm(removed, { recursive: true, force: true });
  await rename(path, removed);
  await rm(removed, { recursive: true, force: true });
}

/** Removes what a killed write or removal left in a folder and nobody misses. */
export async function removeLeftovers(folder: string): Promise<void> {
  await putBackFolders(folder);
  for (const name of await readdir(folder).catch(() => [] as string[])) {
    if (temporary.test(name)) await rm(join(folder, name), { recursive: true, force: true });
  }
}

/** Files below a folder, as paths with `/`, sorted. */
export async function filesIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll("\\", "/"),
    )
    .sort();
}

/** `sha256:` and hexadecimal digits of a file's bytes. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return `sha256:${hash.digest("hex")}`;
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Makes a file's bytes survive the machine. */
async function syncFile(path: string): Promise<void> {
  // For reading: a copy of a tokenizer's file can be read-only.
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } catch (error) {
    // Windows syncs only what is open for writing.
    if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
  } finally {
    await handle.close();
  }
}
