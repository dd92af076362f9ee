import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { makeFolder } from "./machine.ts";

describe("makeFolder", () => {
  const parent = temporaryFolder(afterAll);
  const folder = join(parent, "backend");

  it("removes drafts of its folder that are older than a day, and leaves none of its own", () => {
    const [running, ...leftovers] = ["backend.making-new", "backend.making-old", "backend.making"];
    for (const name of [running, ...leftovers]) mkdirSync(join(parent, name));
    const twoDaysAgo = new Date(Date.now() - 2 * 86_400_000);
    for (const name of leftovers) utimesSync(join(parent, name), twoDaysAgo, twoDaysAgo);
    makeFolder(folder, (draft) => writeFileSync(join(draft, "file"), ""));
    expect(readdirSync(parent).toSorted()).toEqual(["backend", running]);
    expect(readdirSync(folder)).toEqual(["file"]);
  });

  it("keeps its own draft while another build of the same folder begins and ends", () => {
    makeFolder(folder, (draft) => {
      writeFileSync(join(draft, "outer"), "");
      makeFolder(folder, (other) => {
        expect(basename(other)).not.toBe(basename(draft));
        expect(readdirSync(other)).toEqual([]);
      });
      expect(existsSync(join(draft, "outer"))).toBe(true);
    });
    expect(readdirSync(folder)).toEqual(["outer"]);
  });
});
