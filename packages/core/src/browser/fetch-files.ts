import { PeriodicEvalError } from "../errors.ts";
import { join, mkdir, writeFile } from "#platform";

/**
 * Fetches files and writes them to a folder, so that functions that take a path can read them. Fetches them side by side.
 *
 * @param folder Is created if it does not exist.
 * @param address The URL of the folder that serves the files.
 * @param names Names relative to both folders.
 * @throws PeriodicEvalError `data` for a file that cannot be fetched.
 */
export async function fetchFiles(
  folder: string,
  address: string | URL,
  names: readonly string[],
): Promise<void> {
  await mkdir(folder, { recursive: true });
  const base = `${String(address).replace(/\/+$/, "")}/`;
  await Promise.all(
    names.map(async (name) => {
      const response = await fetch(new URL(name, base));
      if (!response.ok)
        throw new PeriodicEvalError({
          code: "data",
          where: `${base}${name}`,
          got: `status ${response.status}`,
          expected: "a file",
          fix: "Check the address and that the server has the file.",
        });
      await writeFile(join(folder, name), new Uint8Array(await response.arrayBuffer()));
    }),
  );
}
