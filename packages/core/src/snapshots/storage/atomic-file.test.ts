import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PeriodicEvalError } from "../../errors.ts";
import { faultyFiles } from "../../testing/faulty-files.ts";
import { appendLines, readLines, readTextFile, removeDrafts, writeWhole } from "./atomic-file.ts";

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "periodic-eval-file-"));
  path = join(folder, "file");
});
afterEach(() => rm(folder, { recursive: true }));

it("removeDrafts removes what writes and takings of locks left, of the files that are named", async () => {
  const claimed = `.lock.${"0a".repeat(8)}`;
  const left = [".file.1.2.tmp", "..lock.1.2.tmp", claimed, `.${claimed}.1.2.tmp`];
  const kept = [".other.1.2.tmp", ".file.tmp", "file", ".lock", `file.${"0a".repeat(8)}`];
  for (const name of [...left, ...kept]) await writeFile(join(folder, name), "");
  await removeDrafts(folder, (file) => file === "file" || file === ".lock");
  expect((await readdir(folder)).sort()).toEqual(kept.toSorted());
  await removeDrafts(join(folder, "none"), () => true);
});

describe("writeWhole", () => {
  it("syncs the bytes before the rename and the folder after it", async () => {
    const log: string[] = [];
    const fs = faultyFiles(({ name }) => {
      log.push(name);
      return "none";
    });
    await writeWhole(path, "text", fs);
    expect(log).toEqual(["open", "write", "sync", "close", "rename", "syncFolder"]);
    expect(await readFile(path, "utf8")).toBe("text");
  });

  it("takes pieces from what writes them, text and bytes, and none where that throws", async () => {
    await writeWhole(path, async (file) => {
      await file.write("text");
      await file.write(Uint8Array.of(0, 255));
    });
    expect([...(await readFile(path))]).toEqual([...Buffer.from("text"), 0, 255]);
    const mistake = new PeriodicEvalError({ code: "model", where: "w", got: "g", expected: "e", fix: "f" });
    const writing = writeWhole(path, async (file) => {
      await file.write("half");
      throw mistake;
    });
    await expect(writing).rejects.toBe(mistake);
    expect((await readFile(path)).length).toBe(6);
    expect(await readdir(folder)).toEqual(["file"]);
  });

  it.each(["open", "write", "sync", "close", "rename"])(
    "a full disk at %s leaves the old text and no temporary file",
    async (at) => {
      await writeFile(path, "old");
      const fs = faultyFiles(({ name }) => (name === at ? { errno: "ENOSPC" } : "none"));
      await expect(writeWhole(path, "new", fs)).rejects.toThrow(
        `${path}: got ENOSPC (no space left on the device), expected a path that can be read and written. Free space`,
      );
      expect(await readFile(path, "utf8")).toBe("old");
      expect(await readdir(folder)).toEqual(["file"]);
    },
  );
});

describe("appendLines", () => {
  it("creates, appends, and cuts a torn last line first", async () => {
    await appendLines(path, ["one"]);
    await writeFile(path, 'one\n{"torn": "é', { flag: "w" });
    expect(await readLines(path)).toEqual(["one"]);
    await appendLines(path, ["two", "three"]);
    expect(await readFile(path, "utf8")).toBe("one\ntwo\nthree\n");
  });

  it.each(["write", "sync"])("a full disk at %s leaves the lines there were", async (at) => {
    await writeFile(path, "eins é\n");
    const fs = faultyFiles(({ name }) => (name === at ? { errno: "ENOSPC" } : "none"));
    await expect(appendLines(path, ["two two two"], fs)).rejects.toThrow("ENOSPC");
    expect(await readFile(path, "utf8")).toBe("eins é\n");
  });

  it("death in the middle of a line costs that line only", async () => {
    await appendLines(path, ["one"]);
    const fs = faultyFiles(({ name }) => (name === "write" ? "die" : "none"));
    await expect(appendLines(path, ["two two two"], fs)).rejects.toThrow("dead");
    expect(await readFile(path, "utf8")).toBe("one\ntwo tw"); // half of the 12 bytes
    expect(await readLines(path)).toEqual(["one"]);
    await appendLines(path, ["three"]);
    expect(await readLines(path)).toEqual(["one", "three"]);
  });
});

describe("readTextFile", () => {
  it("drops a byte-order mark", async () => {
    await writeFile(path, "\uFEFFtext");
    expect(await readTextFile(path, "here")).toBe("text");
  });

  it("names option, path and what is wrong", async () => {
    const missing = `${path}-not-there`;
    await expect(readTextFile(missing, "capability.questions")).rejects.toThrow(
      `[periodic-eval] capability.questions: got "${missing}", which does not exist, expected a readable text file.`,
    );
    await expect(readTextFile(folder, "capability.questions")).rejects.toThrow(
      "a folder stands where a file should be",
    );
  });
});
