import fc from "fast-check";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import * as browser from "../browser.ts";
import * as node from "../node.ts";
import { FileTree, tree, type NamedEntry, type Storage } from "./file-tree.ts";

/** The functions that differ only in where the files are. */
type Files = Pick<
  typeof node,
  | "link"
  | "mkdir"
  | "open"
  | "readdir"
  | "readFile"
  | "rename"
  | "rm"
  | "rmdir"
  | "stat"
  | "truncate"
  | "unlink"
  | "writeFile"
>;

type Operation = (fs: Files, root: string) => Promise<unknown>;

const names = ["a", "b", "a/x", "a/y", "b/x", "a/x/z"] as const;
const place = fc.constantFrom(...names);
const one = (make: (path: string) => Operation): fc.Arbitrary<Operation> => place.map(make);
const two = (make: (from: string, to: string) => Operation): fc.Arbitrary<Operation> =>
  fc.tuple(place, place).map(([from, to]) => make(from, to));
const writing = (make: (path: string, text: string, mode: string) => Operation): fc.Arbitrary<Operation> =>
  fc
    .tuple(place, fc.string(), fc.constantFrom("wx", "a"))
    .map(([path, text, mode]) => make(path, text, mode));

const operations: fc.Arbitrary<Operation> = fc.oneof(
  one((path) => (fs, root) => fs.mkdir(join(root, path))),
  one((path) => (fs, root) => fs.mkdir(join(root, path), { recursive: true }).then(() => null)),
  writing((path, text) => (fs, root) => fs.writeFile(join(root, path), text)),
  writing((path, text, mode) => async (fs, root) => {
    const handle = await fs.open(join(root, path), mode);
    await handle.writeFile(text);
    await handle.writeFile("+");
    await handle.close();
  }),
  two((from, to) => (fs, root) => fs.rename(join(root, from), join(root, to))),
  two((from, to) => (fs, root) => fs.link(join(root, from), join(root, to))),
  one((path) => (fs, root) => fs.unlink(join(root, path))),
  one((path) => (fs, root) => fs.rmdir(join(root, path))),
  one((path) => (fs, root) => fs.rm(join(root, path), { recursive: true, force: true })),
  one((path) => (fs, root) => fs.readFile(join(root, path), "utf8")),
  one((path) => async (fs, root) => (await fs.readdir(join(root, path))).sort()),
  one((path) => async (fs, root) => {
    const found = await fs.stat(join(root, path));
    return found.isDirectory() ? "folder" : found.size;
  }),
);

/** Returns the result, or the code of the error. */
async function outcome(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return { value: await work() };
  } catch (error) {
    return { code: (error as NodeJS.ErrnoException).code };
  }
}

/** Codes with which systems refuse the same mistake. */
const alike: Readonly<Record<string, string>> = { EPERM: "EISDIR", ENOTEMPTY: "EEXIST" };
const known = (result: unknown): unknown =>
  JSON.parse(JSON.stringify(result), (_, value: unknown) => alike[value as string] ?? value);

async function contentOf(fs: Files, root: string): Promise<readonly string[]> {
  const entries = await fs.readdir(root, { recursive: true, withFileTypes: true });
  const lines = entries.map(async (entry) => {
    const at = join(entry.parentPath, entry.name);
    return `${at.slice(root.length)}: ${entry.isFile() ? await fs.readFile(at, "utf8") : "folder"}`;
  });
  return (await Promise.all(lines)).sort();
}

describe("files in browsers", () => {
  // Other systems refuse some mistakes with other codes.
  it.runIf(process.platform === "linux")("do what node:fs does, errors included", async () => {
    const run = fc.array(operations, { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(run, async (steps) => {
        const [here, there] = [temporaryFolder(), "/run"];
        const files = browser as unknown as Files;
        await tree.use(null);
        await files.mkdir(there);
        for (const step of steps) {
          const [expected, got] = [
            await outcome(() => step(node, here)),
            await outcome(() => step(files, there)),
          ];
          expect(known(got)).toEqual(known(expected));
        }
        expect(await contentOf(files, there)).toEqual(await contentOf(node, here));
      }),
      { numRuns: 100 },
    );
  });

  it("read ranges, and stay readable through an open handle after they are removed", async () => {
    await tree.use(null);
    await browser.writeFile("/file", "0123456789");
    const handle = await browser.open("/file");
    await browser.unlink("/file");
    const bytes = new Uint8Array(5);
    expect(await handle.read(bytes, 1, 3, 4)).toEqual({ bytesRead: 3 });
    expect(new TextDecoder().decode(bytes)).toBe("\0" + "456\0");
    expect(await handle.read(bytes, 0, 5, 8)).toEqual({ bytesRead: 2 });
    await handle.close();
    await expect(handle.readFile()).rejects.toMatchObject({ code: "EBADF" });
  });
});

/** A storage in memory that fails on request, and that a later tree can load. */
function fakeStorage(): Storage & { fails: boolean; readonly contents: ReadonlyMap<number, Uint8Array> } {
  let names: readonly NamedEntry[] = [];
  const contents = new Map<number, Uint8Array>();
  return {
    fails: false,
    contents,
    load: async () => structuredClone(names),
    read: async (id) => contents.get(id)!.slice(),
    async write(changes) {
      const [kept, bytes] = [
        structuredClone(changes.names),
        changes.contents.map(([id, each]) => [id, each.slice()] as const),
      ];
      await Promise.resolve();
      if (this.fails) throw new DOMException("full", "QuotaExceededError");
      names = kept;
      for (const [id, each] of bytes) contents.set(id, each);
      for (const id of changes.removed) contents.delete(id);
    },
  };
}

const text = async (files: FileTree, at: string): Promise<string | null> => {
  const found = files.find(at);
  return found?.kind === "file" ? new TextDecoder().decode(await files.read(found)) : null;
};

describe("FileTree", () => {
  it("finds in its storage what it held at the last sync", async () => {
    const storage = fakeStorage();
    const files = new FileTree();
    await files.use(storage);
    files.makeFolder("/run");
    const file = files.makeFile("/run/draft");
    await files.write(file, new TextEncoder().encode("one"), 0);
    files.link("/run/draft", "/run/second");
    files.rename("/run/draft", "/run/final");
    await files.sync();
    await files.write(file, new TextEncoder().encode("two"), 0);

    const later = new FileTree();
    await later.use(storage);
    expect(await text(later, "/run/final")).toBe("one");
    expect(later.find("/run/draft")).toBeNull();
    await files.sync();
    await later.use(storage);
    expect(await text(later, "/run/second")).toBe("two");
    files.remove("/run", "rm");
    await files.sync();
    expect(storage.contents.size).toBe(0);
  });

  it("reports a full storage at the sync, and writes everything at the next", async () => {
    const storage = fakeStorage();
    const files = new FileTree();
    await files.use(storage);
    const file = files.makeFile("/file");
    await files.write(file, new Uint8Array(100_000).fill(7), 0);
    storage.fails = true;
    await expect(files.sync()).rejects.toMatchObject({ code: "ENOSPC" });
    storage.fails = false;
    await files.write(file, Uint8Array.of(9), 0);
    await files.sync();
    // The storage holds it now, so memory does not.
    expect(file.buffer).toBeNull();
    const bytes = await files.read(file);
    expect([bytes.length, bytes[0], bytes[99_999]]).toEqual([100_000, 9, 7]);
  });

  it("keeps changes that are made while it writes earlier ones", async () => {
    const storage = fakeStorage();
    const files = new FileTree();
    await files.use(storage);
    const file = files.makeFile("/file");
    await files.write(file, new Uint8Array(100_000).fill(1), 0);
    const writing = files.sync();
    await files.write(file, Uint8Array.of(2), 0);
    await writing;
    await files.sync();
    expect(storage.contents.get(file.id)!.subarray(0, 2)).toEqual(Uint8Array.of(2, 1));
  });
});
