import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { tree } from "../platform/browser/file-tree.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { fetchFiles, deleteBrowserFiles, openBrowserFiles } from "./index.ts";

// The tree of this process keeps the change that could not be written.
afterAll(() => vi.resetModules());

describe("openBrowserFiles", () => {
  it("says that Node needs no storage", async () => {
    await expect(openBrowserFiles()).rejects.toMatchObject({
      code: "config",
      got: "a program outside of browsers",
    });
  });

  it("refuses a name that is not a plain one", async () => {
    await expect(openBrowserFiles({ name: "a/b" })).rejects.toMatchObject({ code: "config" });
  });

  it("explains a page from an address without Web Locks", async () => {
    vi.stubGlobal("navigator", {});
    await expect(deleteBrowserFiles()).rejects.toMatchObject({
      code: "store",
      expected: "a page from https or localhost",
      detail: { kind: "no-storage" },
    });
  });

  it.each([
    ["IndexedDB", { locks: { request: (_name: string, _options: object, work: () => unknown) => work() } }],
    ["Web Locks", { locks: { request: async () => Promise.reject(new Error("insecure")) } }],
  ])("tells a browser that refuses %s from a database that another page has opened", async (_, navigator) => {
    const open = () => {
      throw new Error("insecure");
    };
    vi.stubGlobal("indexedDB", { open });
    vi.stubGlobal("navigator", navigator);
    await expect(openBrowserFiles()).rejects.toMatchObject({
      code: "store",
      got: "insecure",
      detail: { kind: "no-storage" },
    });
  });

  /** Stubs a database and its lock. `isDamaged` databases cannot be loaded; none can be written. */
  function stubBrowser(isDamaged: boolean) {
    const stub = { closed: 0, lock: Promise.resolve() };
    const request = (result: unknown, fails = false) => ({
      result,
      error: new Error("damaged"),
      addEventListener: (type: string, listener: () => void) =>
        type === (fails ? "error" : "success") && queueMicrotask(listener),
    });
    const transaction = (names: string | readonly string[]) => {
      if (typeof names !== "string") throw new Error("no space left");
      return { objectStore: () => ({ getAll: () => request([], isDamaged) }) };
    };
    vi.stubGlobal("indexedDB", { open: () => request({ transaction, close: () => void stub.closed++ }) });
    const hold = (_name: string, _options: object, work: () => Promise<void>) => (stub.lock = work());
    vi.stubGlobal("navigator", { locks: { request: hold } });
    return stub;
  }

  it("closes the database and releases its lock when it cannot be loaded", async () => {
    const stub = stubBrowser(true);
    await expect(openBrowserFiles()).rejects.toThrow("damaged");
    await stub.lock;
    expect(stub.closed).toBe(1);
  });

  it("closes the database and releases its lock when the last changes cannot be written", async () => {
    const stub = stubBrowser(false);
    const files = await openBrowserFiles();
    tree.makeFile("/unwritten");
    await expect(files.close()).rejects.toMatchObject({ code: "EIO" });
    await stub.lock;
    expect(stub.closed).toBe(1);
  });
});

describe("fetchFiles", () => {
  const served = async (address: URL) =>
    address.pathname === "/site/model/config.json"
      ? new Response("{}")
      : new Response("", { status: address.pathname === "/site/model/empty" ? 200 : 404 });

  it("writes the files of an address to a folder", async () => {
    vi.stubGlobal("fetch", served);
    const folder = join(temporaryFolder(), "deep", "model");
    await fetchFiles(folder, "https://example.org/site/model", ["config.json", "empty"]);
    expect(await readFile(join(folder, "config.json"), "utf8")).toBe("{}");
    expect(await readFile(join(folder, "empty"), "utf8")).toBe("");
  });

  it("names a file that the server lacks, and its status", async () => {
    vi.stubGlobal("fetch", served);
    await expect(
      fetchFiles(temporaryFolder(), new URL("https://example.org/site/model/"), ["absent"]),
    ).rejects.toMatchObject({
      code: "data",
      where: "https://example.org/site/model/absent",
      got: "status 404",
    });
  });

  it("resolves a relative address against the address of the page", async () => {
    vi.stubGlobal("fetch", served);
    vi.stubGlobal("location", { href: "https://example.org/site/page.html" });
    for (const address of ["model", "/site/model/"]) {
      const folder = temporaryFolder();
      await fetchFiles(folder, address, ["config.json"]);
      expect(await readFile(join(folder, "config.json"), "utf8")).toBe("{}");
    }
  });

  it("rejects an address that is not a URL", async () => {
    await expect(fetchFiles(temporaryFolder(), "/model", ["config.json"])).rejects.toMatchObject({
      code: "data",
      got: 'the address "/model/", which is not a URL',
      expected: "an absolute URL",
      cause: expect.any(TypeError),
    });
  });

  it.each([
    ["the request", async () => Promise.reject(new TypeError("Failed to fetch"))],
    [
      "the transfer",
      async () => new Response(new ReadableStream({ start: (body) => body.error("cut off") })),
    ],
  ])("reports %s that fails, with its cause", async (_, fetch) => {
    vi.stubGlobal("fetch", fetch);
    await expect(fetchFiles(temporaryFolder(), "https://example.org", ["a"])).rejects.toMatchObject({
      code: "data",
      where: "https://example.org/a",
      got: expect.stringMatching(/^a failed request \((Failed to fetch|cut off)\)$/),
      cause: expect.anything(),
    });
  });

  it("makes the folders of names", async () => {
    vi.stubGlobal("fetch", served);
    const folder = temporaryFolder();
    await fetchFiles(folder, "https://example.org/site", ["model/config.json"]);
    expect(await readFile(join(folder, "model", "config.json"), "utf8")).toBe("{}");
  });
});
