import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";

const temporary = /^\..+\.(?:draft|old)$/;

/**
 * Writes a folder so that a reader sees all of it or nothing, whatever dies when: a draft beside it, every file synced,
 * renamed, its parent synced. A folder that stood there is removed last.
 *
 * @throws PeriodicEvalError `store`; the draft is then gone and what stood there stands.
 */
export async function writeWholeFolder(path: string, fill: (draft: string) => Promise<void>): Promise<void> {
  const parent = dirname(path);
  const draft = join(parent, `.${basename(path)}.draft`);
  const old = join(parent, `.${basename(path)}.old`);
  try {
    await rm(draft, { recursive: true, force: true });
    await rm(old, { recursive: true, force: true });
    await mkdir(draft, { recursive: true });
    await fill(draft);
    for (const file of await filesIn(draft)) await sync(join(draft, file));
    await sync(draft);
    if (await exists(path)) await rename(path, old);
    await rename(draft, path);
    await sync(parent);
    await rm(old, { recursive: true, force: true });
  } catch (cause) {
    await rm(draft, { recursive: true, force: true }).catch(() => undefined);
    throw PeriodicEvalError.is(cause) ? cause : notWritten(path, cause);
  }
}

/** Removes a folder so that no reader sees a part of it. */
export async function removeWholeFolder(path: string): Promise<void> {
  const old = join(dirname(path), `.${basename(path)}.old`);
  await rename(path, old);
  await rm(old, { recursive: true, force: true });
}

/** What a killed write or removal left in a folder. */
export async function removeLeftovers(folder: string): Promise<void> {
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

/** Makes a file, or the names in a folder, survive the machine; not every platform can sync a folder. */
async function sync(path: string): Promise<void> {
  try {
    const handle = await open(path, "r");
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    if (!["EISDIR", "EPERM", "EINVAL", "EACCES"].includes((error as NodeJS.ErrnoException).code ?? ""))
      throw error;
  }
}

function notWritten(path: string, cause: unknown): PeriodicEvalError {
  const { code, message } = cause as NodeJS.ErrnoException;
  return new PeriodicEvalError({
    code: "store",
    where: path,
    got: code ?? message,
    expected: "a written checkpoint",
    fix: "Check the free space and the permissions of its folder, then resume the run; earlier checkpoints are intact.",
    cause,
  });
}
