import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { faultyFiles } from "../../../testing/src/faulty-files.test-data.ts";
import { appendLines, removeTemporaryFiles, writeFileAtomic } from "./atomic-file.ts";
import { readLines, readTextFile } from "./read-file.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let folder: string;
let path: string;
beforeEach(async () => {
  folder = temporaryFolder();
  path = join(folder, "file");
});

it("removeTemporaryFiles removes temporary files and lock claims of the given files only", async () => {
  const claimed = `.lock.${"0a".repeat(8)}`;
  const left = [".file.1.2.tmp", "..lock.1.2.tmp", claimed, `.${claimed}.1.2.tmp`];
  const kept = [".other.1.2.tmp", ".file.tmp", "file", ".lock", `file.${"0a".repeat(8)}`];
  for (const name of [...left, ...kept]) await writeFile(join(folder, name), "");
  await removeTemporaryFiles(folder, (file) => file === "file" || file === ".lock");
  expect((await readdir(folder)).sort()).toEqual(kept.toSorted());
  await removeTemporaryFiles(join(folder, "none"), () => true);
});

describe("writeFileAtomic", () => {
  it("syncs the bytes before the rename and the folder after it", async () => {
    const log: string[] = [];
    const fs = faultyFiles(({ name }) => {
      log.push(name);
      return "none";
    });
    await writeFileAtomic(path, "text", fs);
    expect(log).toEqual(["open", "write", "sync", "close", "rename", "syncFolder"]);
    expect(await readFile(path, "utf8")).toBe("text");
  });

  it("writes strings and bytes piece by piece, and keeps the old file if the writer throws", async () => {
    await writeFileAtomic(path, async (file) => {
      await file.write("text");
      await file.write(Uint8Array.of(0, 255));
    });
    expect([...(await readFile(path))]).toEqual([...Buffer.from("text"), 0, 255]);
    const mistake = new PeriodicEvalError({ code: "model", where: "w", got: "g", expected: "e", fix: "f" });
    const writing = writeFileAtomic(path, async (file) => {
      await file.write("half");
      throw mistake;
    });
    await expect(writing).rejects.toBe(mistake);
    expect((await readFile(path)).length).toBe(6);
    expect(await readdir(folder)).toEqual(["file"]);
  });

  it.each(["open", "write", "sync", "close", "rename"])(
    "keeps the old text and no temporary file when the disk is full at %s",
    async (at) => {
      await writeFile(path, "old");
      const fs = faultyFiles(({ name }) => (name === at ? { errno: "ENOSPC" } : "none"));
      await expect(writeFileAtomic(path, "new", fs)).rejects.toThrow(
        `${path}: got ENOSPC (no space left on the device), expected a path that can be read and written. Free space`,
      );
      expect(await readFile(path, "utf8")).toBe("old");
      expect(await readdir(folder)).toEqual(["file"]);
    },
  );
});

describe("appendLines", () => {
  it("creates the file, appends to it and first removes an unfinished last line", async () => {
    await appendLines(path, ["one"]);
    await writeFile(path, 'one\n{"torn": "é', { flag: "w" });
    expect(await readLines(path)).toEqual(["one"]);
    await appendLines(path, ["two", "three"]);
    expect(await readFile(path, "utf8")).toBe("one\ntwo\nthree\n");
  });

  it("syncs the folder of a file that it creates, so that a power failure keeps the file", async () => {
    const log: string[] = [];
    const fs = faultyFiles(({ name }) => {
      log.push(name);
      return "none";
    });
    await appendLines(path, ["one"], fs);
    await appendLines(path, ["two"], fs);
    const append = ["open", "write", "sync", "close"];
    expect(log).toEqual([...append, "syncFolder", ...append]);
  });

  it.each(["write", "sync"])("keeps the earlier lines when the disk is full at %s", async (at) => {
    await writeFile(path, "eins é\n");
    const fs = faultyFiles(({ name }) => (name === at ? { errno: "ENOSPC" } : "none"));
    await expect(appendLines(path, ["two two two"], fs)).rejects.toThrow("ENOSPC");
    expect(await readFile(path, "utf8")).toBe("eins é\n");
  });

  it("loses only the line that was being written when the process died", async () => {
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
  it("removes a byte-order mark", async () => {
    await writeFile(path, "\uFEFFtext");
    expect(await readTextFile(path, "here")).toBe("text");
  });

  it("refuses bytes that are not UTF-8, by file, line and byte", async () => {
    await writeFile(path, Buffer.from("fire\n\u00FCber \xFF", "latin1"));
    await expect(readTextFile(path, "here")).rejects.toMatchObject({
      code: "data",
      where: `${path}:2`,
      got: "bytes that are not UTF-8 (0xfc at byte 1)",
    });
    await writeFile(path, Buffer.of(0xef, 0xbf, 0xbd, 0x0a, 0x61, 0xef, 0xbf, 0xbd, 0xed, 0xa0, 0x80));
    await expect(readTextFile(path, "here")).rejects.toMatchObject({
      where: `${path}:2`,
      got: "bytes that are not UTF-8 (0xed at byte 5)",
    });
  });

  it("throws a data error with the option, the path and the reason", async () => {
    const missing = `${path}-not-there`;
    await expect(readTextFile(missing, "capability.questions")).rejects.toThrow(
      `[periodic-eval] capability.questions: got "${missing}", which does not exist, expected a readable text file.`,
    );
    await expect(readTextFile(folder, "capability.questions")).rejects.toThrow(
      "a folder is in the place of a file",
    );
  });
});
