import { existsSync, readdirSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { checkWritable, makeFolderSync, nodeFiles } from "./file-system.ts";

let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});

/** Ways of making a folder, as promises. */
const makers = {
  makeFolder: nodeFiles.makeFolder,
  makeFolderSync: async (path: string) => makeFolderSync(path),
};

describe.each(Object.entries(makers))("%s", (_, make) => {
  it("creates a folder and its parents, absolute or relative, and accepts one that exists", async () => {
    const path = join(folder, "a/b/c");
    await make(path);
    await make(path);
    await make(relative(process.cwd(), join(folder, "d/e")));
    expect(new Set(readdirSync(folder, { recursive: true, encoding: "utf8" }))).toEqual(
      new Set(["a", "a/b", "a/b/c", "d", "d/e"].map((path) => join(path))),
    );
  });

  it("creates folders that others create at the same time", async () => {
    await Promise.all(["a/b/c", "a/b/d", "a/b/c", "a/e"].map((path) => make(join(folder, path))));
    expect(existsSync(join(folder, "a/b/d"))).toBe(true);
  });

  it("accepts a link to a folder, and throws for a file, a link to nothing and links in a circle", async () => {
    await mkdir(join(folder, "real"));
    await writeFile(join(folder, "file"), "");
    for (const [name, target] of [
      ["link", "real"],
      ["dangling", "nothing"],
      ["circle", "circle"],
    ] as const)
      await symlink(join(folder, target), join(folder, name));
    await make(join(folder, "link/inner"));
    expect(existsSync(join(folder, "real/inner"))).toBe(true);
    for (const path of ["file", "file/inner", "dangling", "dangling/inner", "circle/inner"])
      await expect(make(join(folder, path)), path).rejects.toMatchObject({
        code: expect.stringMatching(/^E(EXIST|NOTDIR|NOENT|LOOP)$/),
      });
  });

  it.skipIf(!existsSync("/proc/self"))("throws in a file system without new folders", async () => {
    for (const path of ["/proc/periodic-eval", "/proc/periodic-eval/run", "/proc/self/a/b/c"])
      await expect(make(path), path).rejects.toMatchObject({ code: expect.any(String) });
  });
});

describe("checkWritable", () => {
  it("leaves nothing behind", async () => {
    await mkdir(join(folder, "run"));
    for (const path of ["run", "new", "new/run"]) await checkWritable(join(folder, path));
    expect(readdirSync(folder, { recursive: true })).toEqual(["run"]);
  });

  it.each(["/proc/periodic-eval/run", "/dev/null/run", `NEW/a/${"x".repeat(300)}`, "NEW/\0"])(
    "throws a store error with path and fix for %j, and leaves nothing behind",
    async (path) => {
      const where = path.replace("NEW", join(folder, "new"));
      const error = await checkWritable(where).catch((thrown: unknown) => thrown);
      if (!PeriodicEvalError.is(error, "store")) throw error;
      expect(error).toMatchObject({ where, expected: "a folder that can be created and written to" });
      expect(error.fix).not.toBe("");
      expect(readdirSync(folder)).toEqual([]);
    },
  );
});
