import { cp, mkdtemp, readdir, readFile, realpath, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The fixtures, which an earlier commit wrote: see README.md. */
export const earlierFiles = fileURLToPath(new URL("files", import.meta.url));

/** The folder in which the earlier commit worked; some of its files name it. */
export const earlierRoot = "/tmp/earlier-files";

/** Files that name a folder or a host and that no hash protects. */
const correctable = /(^|\/)(train\.yaml|\.lock|\.feedback\.lock|\.metrics\.[^/]+\.lock|mlflow\.jsonl)$/;

/** A number above that of any process. */
const noProcess = 2 ** 22 + 1;

/**
 * Copies the fixtures to a new temporary folder. Replaces the path of their first folder by the new one, as a user does who moves
 * a run together with its model. Locks then name a dead process of this machine.
 *
 * @param mlflow address of the MLflow server; the fixtures name one of a process that has ended.
 * @returns the folder, which the caller removes.
 */
export async function copyEarlierFiles(mlflow: string): Promise<string> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "earlier-files-")));
  await cp(earlierFiles, root, { recursive: true });
  for (const file of await filesIn(root)) {
    if (!correctable.test(file)) continue;
    const text = await readFile(join(root, file), "utf8");
    const corrected = text
      .replaceAll(earlierRoot, root)
      .replaceAll(/http:\/\/127\.0\.0\.1:\d+\//g, mlflow)
      .replaceAll(/"pid":\d+,"host":"[^"]*"/g, `"pid":${noProcess},"host":${JSON.stringify(hostname())}`);
    await writeFile(join(root, file), corrected);
  }
  return root;
}

/** Paths of all files below a folder, with `/`, sorted. */
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

/** The bytes of all files below a folder that match, as Latin-1 strings by path. */
export async function bytesIn(folder: string, matching = /./): Promise<Readonly<Record<string, string>>> {
  const files = (await filesIn(folder)).filter((file) => matching.test(file));
  const bytes = files.map(async (file) => [file, await readFile(join(folder, file), "latin1")] as const);
  return Object.fromEntries(await Promise.all(bytes));
}

export const readJson = async (path: string): Promise<unknown> => JSON.parse(await readFile(path, "utf8"));

export const readJsonLines = async (path: string): Promise<readonly unknown[]> =>
  (await readFile(path, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
