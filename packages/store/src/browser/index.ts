/** Files in browsers: paths of runs, models and data sets lead to files in memory, or in IndexedDB after `openBrowserFiles`. */
import { dirname, join, mkdir, writeFile } from "#platform";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { checkName, configError, dataError, errorMessage } from "@periodic-eval/contracts/options";
import { tree, type NamedEntry, type Storage } from "../platform/browser/file-tree.ts";

export { mkdir, readdir, readFile, rm, stat, writeFile } from "#platform";

export interface BrowserFilesOptions {
  /** Names the database, so that one site can hold several. Default: `periodic-eval`. */
  readonly name?: string;
}

/** Files that outlive the page. */
export interface BrowserFiles {
  /** Writes what is not written yet, and lets another page or worker open the files, also if the writing fails. */
  close(): Promise<void>;
}

const defaultName = "periodic-eval";

/**
 * Keeps the files of this page or worker in the browser's IndexedDB, and shows those that an earlier page kept: runs, checkpoints
 * and snapshots continue after a reload. Without it, files are in memory and end with the page. Call it before the first file is
 * written. One page or worker at a time can open a database.
 *
 * @throws PeriodicEvalError `store` if another page or worker has opened the database, or, with the detail `no-storage`, if the browser
 *   allows no storage; `config` outside of browsers, or after the first file.
 */
export async function openBrowserFiles({
  name = defaultName,
}: BrowserFilesOptions = {}): Promise<BrowserFiles> {
  checkName("openBrowserFiles options.name", name);
  if (typeof indexedDB === "undefined")
    throw configError({
      where: "openBrowserFiles",
      got: "a program outside of browsers",
      expected: "a page or worker with IndexedDB",
      fix: "Leave out the call: in Node, files are in the file system.",
    });
  if (!tree.isEmpty)
    throw configError({
      where: "openBrowserFiles",
      got: "a call after files were written",
      expected: "a call before the first file",
      fix: "Call it once, when the page or worker starts.",
    });
  const release = await takeDatabase(name);
  let storage: IndexedDbStorage | null = null;
  const closeStorage = (): void => {
    storage?.close();
    release();
  };
  try {
    storage = await openIndexedDb(name).catch((cause: unknown) => {
      throw refused(name, cause);
    });
    await tree.use(storage);
  } catch (error) {
    closeStorage();
    throw error;
  }
  return {
    async close() {
      try {
        await tree.use(null);
      } finally {
        closeStorage();
      }
    },
  };
}

/**
 * Deletes all files of a database. Call it while the database is closed.
 *
 * @throws PeriodicEvalError `store` if a page or worker has opened it.
 */
export async function deleteBrowserFiles({ name = defaultName }: BrowserFilesOptions = {}): Promise<void> {
  const release = await takeDatabase(name);
  try {
    // Waits until no page uses it.
    await resultOf(indexedDB.deleteDatabase(name));
  } finally {
    release();
  }
}

/** A storage in the browser's IndexedDB. */
interface IndexedDbStorage extends Storage {
  close(): void;
}

/** Opens a database of files, and creates it if it does not exist. */
async function openIndexedDb(name: string): Promise<IndexedDbStorage> {
  const request = indexedDB.open(name, 1);
  request.addEventListener("upgradeneeded", () => {
    for (const store of ["names", "contents"]) request.result.createObjectStore(store);
  });
  const database = await resultOf(request);
  const storeOf = (store: string) => database.transaction(store).objectStore(store);
  return {
    load: async () => (await resultOf<(readonly NamedEntry[])[]>(storeOf("names").getAll())).flat(),
    read: (id) => resultOf<Uint8Array>(storeOf("contents").get(id)),
    write({ names, contents, removed }) {
      const transaction = database.transaction(["names", "contents"], "readwrite", { durability: "strict" });
      transaction.objectStore("names").put(names, 0);
      const store = transaction.objectStore("contents");
      // A copy, because `put` would also store the rest of the buffer.
      for (const [id, bytes] of contents) store.put(bytes.slice(), id);
      for (const id of removed) store.delete(id);
      return new Promise((resolve, reject) => {
        transaction.addEventListener("complete", () => resolve());
        transaction.addEventListener("abort", () => reject(transaction.error ?? new Error("aborted")));
      });
    },
    close: () => database.close(),
  };
}

const resultOf = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => reject(request.error ?? new Error("the request failed")));
  });

/** How long a page that is being closed or reloaded may take to release the database. */
const releaseMilliseconds = 3000;

/** Takes the database for this page or worker. The browser releases it if the page ends in any way. */
async function takeDatabase(name: string): Promise<() => void> {
  const { locks } = navigator as { readonly locks?: LockManager };
  if (locks === undefined)
    throw new PeriodicEvalError({
      code: "store",
      where: `database "${name}"`,
      got: "a page without Web Locks",
      expected: "a page from https or localhost",
      fix: "Serve the page over https, or leave out openBrowserFiles and keep the files in memory.",
      detail: { kind: "no-storage" },
    });
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(releaseMilliseconds);
    const hold = () => new Promise<void>((release) => resolve(release));
    locks
      .request(`${defaultName}:${name}`, { signal }, hold)
      .catch((error: unknown) => reject(signal.aborted ? taken(name) : refused(name, error)));
  });
}

const taken = (name: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "store",
    where: `database "${name}"`,
    got: "a database that another page or worker has opened",
    expected: "a database that no other page uses",
    fix: "Close the other page, or choose another name.",
  });

const refused = (name: string, cause: unknown): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "store",
    where: `database "${name}"`,
    got: errorMessage(cause),
    expected: "a browser that allows storage",
    fix: "Allow storage for this site (private windows may refuse it), or keep the files in memory.",
    cause,
    detail: { kind: "no-storage" },
  });

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
    throw dataError(
      `fetchFiles "${name}"`,
      `the address "${base}", which is not a URL`,
      location === undefined ? "an absolute URL" : "a URL, absolute or relative to this page",
      "Pass the URL of the folder that serves the files.",
      cause,
    );
  }
}

async function bytesFrom(url: URL): Promise<Uint8Array> {
  let response: Response;
  try {
    response = await fetch(url);
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
  } catch (cause) {
    throw dataError(
      url.href,
      `a failed request (${errorMessage(cause)})`,
      "a file",
      "Check the address, the network, and that the server allows requests from this page (CORS).",
      cause,
    );
  }
  const fix = "Check the address and that the server has the file.";
  throw dataError(url.href, `status ${response.status}`, "a file", fix);
}
