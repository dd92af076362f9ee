import { readFileSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../testing/tiny-run.ts";
import type { BadRow } from "./bad-row.ts";
import { badRowsFile } from "./bad-rows-file.ts";

const bad = (count: number, got = "no columns"): BadRow[] =>
  Array.from({ length: count }, (_, i) => ({ where: `rows.jsonl:${i + 1}`, reason: "unknown_form", got }));

it("lists every row once, and keeps the different list of an earlier read", async () => {
  const runDir = await temporaryFolder();
  const folder = join(runDir, "bad_rows/em");
  const keep = badRowsFile(runDir, "em", "dataset");
  await keep([]);
  expect(await readdir(runDir)).toEqual([]);
  // More rows than one chunk.
  expect(await keep(bad(5000))).toBe(`All bad rows are listed in ${join(folder, "dataset.jsonl")}.`);
  const list = (name = "dataset.jsonl") => readFileSync(join(folder, name), "utf8");
  expect(list().split("\n")).toHaveLength(5001);
  expect(list().split("\n")[4999]).toBe(
    '{"where":"rows.jsonl:5000","reason":"unknown_form","got":"no columns"}',
  );
  const first = list();
  await keep(bad(5000));
  expect(await readdir(folder)).toEqual(["dataset.jsonl"]);
  await keep(bad(1));
  // All rows are corrected, so the old list no longer applies.
  await keep([]);
  expect((await readdir(folder)).sort()).toEqual(["dataset.1.jsonl", "dataset.2.jsonl"]);
  expect([list("dataset.1.jsonl"), list("dataset.2.jsonl").split("\n").length]).toEqual([first, 2]);
});

it("explains why the list cannot be written, and does not throw", async () => {
  const runDir = await temporaryFolder();
  await writeFile(join(runDir, "bad_rows"), "a file");
  expect(await badRowsFile(runDir, "em", "dataset")(bad(1))).toMatch(
    /^The list of all bad rows cannot be written: /,
  );
});
