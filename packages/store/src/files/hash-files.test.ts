import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { hashFiles } from "./hash-files.ts";

it("hashes the start and the files in order, as one text", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hash-"));
  const paths = [join(folder, "b"), join(folder, "a")];
  await Promise.all(paths.map((path, at) => writeFile(path, `file ${at}`)));
  const of = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;
  expect(await hashFiles(paths, "start ")).toBe(of("start file 0file 1"));
  expect(await hashFiles([])).toBe(of(""));
  await expect(hashFiles([join(folder, "missing")])).rejects.toThrow("ENOENT");
  await rm(folder, { recursive: true });
});
