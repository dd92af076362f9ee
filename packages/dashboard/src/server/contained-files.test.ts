import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readIfPresent } from "@periodic-eval/store";
import { afterAll, beforeAll, expect, it } from "vitest";
import { containedFiles, namesOf, type ContainedFiles } from "./contained-files.ts";

let above = "";
const isWindows = process.platform === "win32";
let files: ContainedFiles;
beforeAll(async () => {
  above = await realpath(await mkdtemp(join(tmpdir(), "contained-")));
  const root = join(above, "root");
  await mkdir(join(root, "folder"), { recursive: true });
  await mkdir(join(above, "root-beside"));
  await writeFile(join(above, "root-beside", "file"), "outside");
  await writeFile(join(root, "folder", "file"), "inside");
  await writeFile(join(root, "large"), "x".repeat(1025));
  await symlink("folder/file", join(root, "to-inside"));
  await symlink("../root-beside/file", join(root, "to-outside"));
  await symlink("../root-beside", join(root, "folder-outside"));
  await symlink(isWindows ? "../root-beside/file" : "/dev/zero", join(root, "endless"));
  if (!isWindows) execFileSync("mkfifo", [join(root, "pipe")]);
  files = containedFiles(root, { maxFileBytes: 1024 });
});
afterAll(() => rm(above, { recursive: true }));

it("reads files inside the folder, by name or through a link", async () => {
  expect(await files.read("folder/file")).toBe("inside");
  expect(await files.read("./folder/./file")).toBe("inside");
  expect(await files.read("to-inside")).toBe("inside");
  expect(await files.list("folder")).toEqual([{ name: "file", isFolder: false }]);
  // A link to a folder does not count as a folder, wherever it leads.
  expect((await files.list("")).find(({ name }) => name === "folder-outside")).toMatchObject({
    isFolder: false,
  });
});

it.each([
  "to-outside",
  "folder-outside/file",
  "../root-beside/file",
  "endless",
  "nothing",
  "folder/file/below",
])("throws ENOENT for %s, without an absolute path", async (path) => {
  const error = await files.read(path).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "ENOENT", message: `${path}: no such file or folder` });
  await expect(files.stamp(path)).rejects.toMatchObject({ code: "ENOENT" });
  await expect(files.list(path)).rejects.toMatchObject({ code: "ENOENT" });
  expect(await readIfPresent(path, files)).toBeNull();
});

it("lets other work run while it reads a file of more than 1 MiB", async () => {
  const text = "ü".repeat(2 ** 20);
  await writeFile(join(above, "root", "of-two-mebibytes"), text);
  let hasOtherWorkRun = false;
  setImmediate(() => (hasOtherWorkRun = true));
  expect((await containedFiles(join(above, "root")).read("of-two-mebibytes")) === text).toBe(true);
  expect(hasOtherWorkRun).toBe(true);
});

it("throws for large files, folders and pipes", async () => {
  await expect(files.read("large")).rejects.toThrow(
    /large: got a file of 0\.0 MiB, expected at most 0\.0 MiB\./,
  );
  if (!isWindows)
    await expect(files.read("pipe")).rejects.toThrow(/pipe: got a special file, expected a regular file\./);
  await expect(files.read("folder")).rejects.toThrow(/folder: got a folder, expected a regular file\./);
});

it.each([
  ["", []],
  ["a//./b/", ["a", "b"]],
  ["%2e%2e", ["%2e%2e"]],
  ["/a", null],
  ["a/../b", null],
  ["a\0", null],
])("splits %j into %j", (path, names) => {
  expect(namesOf(path, false)).toEqual(names);
  expect(namesOf(path, true)).toEqual(names);
});

it.each([
  ["a\\b", ["a\\b"]],
  ["C:/a", ["C:", "a"]],
  ["c:x", ["c:x"]],
  ["..\\a", ["..\\a"]],
])("splits %j into %j, except on Windows, where it may lead outside", (path, names) => {
  expect(namesOf(path, false)).toEqual(names);
  expect(namesOf(path, true)).toBeNull();
});
