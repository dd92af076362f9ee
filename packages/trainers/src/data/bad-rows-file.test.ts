import { readFileSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";
import { type BadRow, badRowsFile } from "./bad-row.ts";

const bad = (count: number, got = "no columns"): BadRow[] =>
  Array.from({ length: count }, (_, i) => ({ where: `rows.jsonl:${i + 1}`, reason: "unknown_form", got }));

it("lists every row once, in place of the list of an earlier read", async () => {
  const runDir = await temporaryFolder();
  const folder = join(runDir, "bad_rows/em");
  const keep = badRowsFile(runDir, "em", "dataset");
  await keep([]);
  expect(await readdir(runDir)).toEqual([]);
  // More rows than one chunk.
  expect(await keep(bad(5000))).toBe(`All bad rows are listed in ${join(folder, "dataset.jsonl")}.`);
  const lines = () => readFileSync(join(folder, "dataset.jsonl"), "utf8").split("\n");
  expect(lines()).toHaveLength(5001);
  expect(lines()[4999]).toBe('{"where":"rows.jsonl:5000","reason":"unknown_form","got":"no columns"}');
  await keep(bad(1));
  expect(lines()).toHaveLength(2);
  // All rows are corrected, so the old list no longer applies.
  await keep([]);
  expect(await readdir(folder)).toEqual([]);
});

it("explains why the list cannot be written, and does not throw", async () => {
  const runDir = await temporaryFolder();
  await writeFile(join(runDir, "bad_rows"), "a file");
  expect(await badRowsFile(runDir, "em", "dataset")(bad(1))).toMatch(
    /^The list of all bad rows cannot be written: /,
  );
});
