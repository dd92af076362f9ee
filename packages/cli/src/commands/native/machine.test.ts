import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { makeFolder } from "./machine.ts";

const parent = temporaryFolder(afterAll);

it("makeFolder replaces what an interrupted command has left, and leaves no draft", () => {
  const folder = join(parent, "backend");
  mkdirSync(`${folder}.making`);
  writeFileSync(join(`${folder}.making`, "half"), "");
  makeFolder(folder, (draft) => writeFileSync(join(draft, "file"), ""));
  expect(readdirSync(parent)).toEqual(["backend"]);
  expect(readdirSync(folder)).toEqual(["file"]);
});
