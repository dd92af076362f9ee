import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { hashFiles } from "./hash-files.ts";
import { filesIn, removeLeftovers, removeWholeFolder, writeWholeFolder } from "./whole-folder.ts";

const fill = (text: string) => async (draft: string) => {
  await mkdir(join(draft, "inner"));
  await writeFile(join(draft, "inner/b.txt"), text);
  await writeFile(join(draft, "a.txt"), text);
};

describe("writeWholeFolder", () => {
  it("writes all files, replaces an existing folder, and leaves nothing else", async () => {
    const parent = temporaryFolder();
    const path = join(parent, "step_1");
    await writeWholeFolder(path, fill("old"));
    await writeWholeFolder(path, fill("new"));
    expect(await filesIn(path)).toEqual(["a.txt", "inner/b.txt"]);
    expect(await readFile(join(path, "inner/b.txt"), "utf8")).toBe("new");
    expect(await readdir(parent)).toEqual(["step_1"]);
  });

  it("leaves an existing folder unchanged when the disk is full, and says what to do", async () => {
    const parent = temporaryFolder();
    const path = join(parent, "step_1");
    await writeWholeFolder(path, fill("old"));
    const full = async (draft: string) => {
      await writeFile(join(draft, "a.txt"), "ha");
      throw Object.assign(new Error("no space left on device, write"), { code: "ENOSPC" });
    };
    const error = await writeWholeFolder(path, full).catch((thrown: unknown) => thrown);
    expect(PeriodicEvalError.is(error, "store")).toBe(true);
    expect(String(error)).toMatch(/step_1: got ENOSPC .*, expected a written folder\. Free space/);
    expect(await readFile(join(path, "a.txt"), "utf8")).toBe("old");
    expect(await readdir(parent)).toEqual(["step_1"]);
  });

  it("names a folder that cannot be created", async () => {
    const parent = temporaryFolder();
    await writeFile(join(parent, "train"), "a file");
    await expect(writeWholeFolder(join(parent, "train/step_1"), fill("new"))).rejects.toThrow(
      /step_1: got (ENOTDIR|EEXIST)/,
    );
  });
});

it("removes folders, and the leftovers of an interrupted write", async () => {
  const parent = temporaryFolder();
  const names = [
    "step_1",
    ".step_2.draft-0a",
    "step_3",
    ".step_3.old",
    ".step_4.removed",
    ".step_5.old",
    "train.tokenizer",
    ".train.tokenizer.old",
    ".kept",
  ];
  for (const name of names) await mkdir(join(parent, name));
  await removeWholeFolder(join(parent, "step_1"));
  await removeLeftovers(parent);
  // Only the old version of step_5 is left, complete.
  expect((await readdir(parent)).sort()).toEqual([".kept", "step_3", "step_5", "train.tokenizer"]);
  await removeLeftovers(join(parent, "nowhere"));
});

it("hashes a file's bytes with SHA-256", async () => {
  const path = join(temporaryFolder(), "abc");
  await writeFile(path, "abc");
  // FIPS 180-2, appendix B.1.
  expect(await hashFiles([path])).toBe(
    "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
});
