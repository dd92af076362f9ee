import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { temporaryFolder } from "../testing/temporary-folder.test-data.ts";
import { fetchFiles } from "./fetch-files.ts";
import { deleteBrowserFiles, openBrowserFiles } from "./open-files.ts";

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
    });
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
});
