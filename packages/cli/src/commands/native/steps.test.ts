import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { makeFolder } from "./machine.ts";

describe("makeFolder", () => {
  const parent = temporaryFolder(afterAll);
  const ended = spawnSync(process.execPath, ["--version"]).pid;
  const folder = join(parent, "backend");

  it("removes drafts of ended processes and of an earlier process with the same id", () => {
    const [running, ...leftovers] = [process.ppid, process.pid, ended].map((pid) => `making-${pid}-x`);
    for (const name of [running!, ...leftovers]) mkdirSync(join(parent, name));
    makeFolder(folder, (draft) => writeFileSync(join(draft, "file"), ""));
    expect(readdirSync(parent).toSorted()).toEqual(["backend", running!].toSorted());
  });

  it("keeps its own draft while it builds another folder in the same place", () => {
    makeFolder(folder, (draft) => {
      makeFolder(join(parent, "inner"), () => undefined);
      expect(existsSync(draft)).toBe(true);
    });
    expect(existsSync(join(parent, "inner"))).toBe(true);
  });
});
