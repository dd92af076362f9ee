import { PeriodicEvalError } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { dirname, join, mkdir, writeFile } from "#platform";

/**
 * Fetches files and writes them to a folder, so that functions that take a path can read them. Fetches them side by side.
 *
 * @param folder Is created if it does not exist.
 * @param address The URL of the folder that serves the files. A relative one such as `/model` is resolved against the address of the
 *   page or worker.
 * @param names Names relative to both folders. They may name folders: `tokenizer/vocab.json`.
 * @throws PeriodicEvalError `data` for a file that cannot be fetched.
 */
export async function fetchFiles(
  folder: string,
  address: string | URL,
  names: readonly string[],
): Promise<void> {
  const base = `${String(address).replace(/\/+$/, "")}/`;
  const urls = names.map((name) => urlOf(name, base));
  await mkdir(folder, { recursive: true });
  await Promise.all(
    names.map(async (name, at) => {
      const bytes = await bytesFrom(urls[at]!);
      const path = join(folder, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, bytes);
    }),
  );
}

function urlOf(name: string, base: string): URL {
  const { location } = globalThis as { readonly location?: { readonly href: string } };
  try {
    return new URL(name, new URL(base, location?.href));
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: `fetchFiles "${name}"`,
      got: `the address "${base}", which is not a URL`,
      expected: location === undefined ? "an absolute URL" : "a URL, absolute or relative to this page",
      fix: "Pass the URL of the folder that serves the files.",
      cause,
    });
  }
}

async function bytesFrom(url: URL): Promise<Uint8Array> {
  let response: Response;
  try {
    response = await fetch(url);
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: url.href,
      got: `a failed request (${errorMessage(cause)})`,
      expected: "a file",
      fix: "Check the address, the network, and that the server allows requests from this page (CORS).",
      cause,
    });
  }
  throw new PeriodicEvalError({
    code: "data",
    where: url.href,
    got: `status ${response.status}`,
    expected: "a file",
    fix: "Check the address and that the server has the file.",
  });
}
