import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";
import { isBadRow } from "./bad-row.ts";
import { readRows } from "./read-rows.ts";

/** Returns the values by their places, and the reasons of bad rows. */
async function read(content: string | Uint8Array, name = "rows.json") {
  const path = join(await temporaryFolder(), name);
  await writeFile(path, content);
  const found: Record<string, unknown> = {};
  for await (const row of readRows(path))
    found[row.where.slice(path.length)] = isBadRow(row) ? `${row.reason}: ${row.got}` : row.value;
  return found;
}

describe("a JSON file", () => {
  const list = [{ text: "a" }, { text: "b" }];
  const [a, b] = list;

  it("may be an array of objects", async () => {
    for (const text of [JSON.stringify(list), `\uFEFF\r\n${JSON.stringify(list, null, 2)}\r\n`])
      for (const name of ["rows.json", "rows.jsonl"])
        expect(await read(text, name)).toEqual({ "[0]": a, "[1]": b });
  });

  it("may be an array of strings, which become rows of text as in datasets", async () => {
    expect(await read('["a","b"]')).toEqual({ "[0]": a, "[1]": b });
  });

  it("may be one object over several lines", async () => {
    expect(await read(JSON.stringify(a, null, 1))).toEqual({ "": a });
  });

  it.each([
    ["data", { version: 1, data: list }],
    ["train", { train: list }],
  ])("is refused with the remedy if its rows are in %s", async (name, value) => {
    for (const text of [JSON.stringify(value), JSON.stringify(value, null, 2)])
      await expect(read(text)).rejects.toMatchObject({
        code: "data",
        got: `one object whose "${name}" holds 2 objects`,
        fix: expect.stringMatching(new RegExp(`^Write the array alone into a file: jq \\.${name} `)),
      });
  });

  it.each([
    ["an array without its end", '[{"text":"a"},'],
    ["an array with text behind it", '[{"text":"a"}]\n{"text":"b"}'],
    ["objects over several lines one after the other", '{\n"text":"a"}\n{\n"text":"b"}'],
    ["a key twice", '[{"text":"a","text":"b"}]'],
  ])("is refused with the remedy if it is %s", async (_, text) => {
    await expect(read(text)).rejects.toMatchObject({
      code: "data",
      fix: expect.stringContaining("Write one object per line: jq -c"),
    });
  });
});

describe("a gzip file", () => {
  const lines = '{"text":"a"}\n{"text":"b"}';
  const rows = { ":1": { text: "a" }, ":2": { text: "b" } };

  it("is read by its content, with any ending", async () => {
    for (const name of ["rows.jsonl.gz", "rows.json.gz", "rows.jsonl"])
      expect(await read(gzipSync(lines), name)).toEqual(rows);
    expect(await read(gzipSync('[{"text":"a"}]'), "rows.json.gz")).toEqual({ "[0]": { text: "a" } });
  });

  it("may have several members, padding, and no content", async () => {
    const [first, second] = [lines.slice(0, 15), lines.slice(15)].map((part) => gzipSync(part));
    expect(await read(Buffer.concat([first!, gzipSync(""), second!, Buffer.alloc(512)]))).toEqual(rows);
    expect(await read(gzipSync(""))).toEqual({});
  });

  it("is refused if it is cut off, or if other data follows", async () => {
    await expect(read(gzipSync(lines).subarray(0, -6))).rejects.toMatchObject({
      got: "gzip data that is damaged or cut off (unexpected end of file)",
    });
    await expect(read(Buffer.concat([gzipSync(lines), Buffer.from("junk")]))).rejects.toMatchObject({
      got: "gzip data that is damaged or cut off (incorrect header check)",
    });
  });
});

it.each([
  ["PAR1", "rows.pq", "a Parquet file with another ending"],
  ["ARROW1\0\0", "rows.arrow", "an Arrow file"],
  ["PK\u0003\u0004", "rows.zip", "a zip archive"],
  ["\u0028\u00b5\u002f\u00fd", "rows.jsonl.zst", "a file compressed with zstd"],
  ["BZh9", "rows.jsonl.bz2", "a file compressed with bzip2"],
  ["\u00fd7zXZ\0", "rows.jsonl.xz", "a file compressed with xz"],
  ["\u0004\u0022\u004d\u0018", "rows.jsonl.lz4", "a file compressed with lz4"],
])("refuses %j by its first bytes", async (bytes, name, got) => {
  await expect(read(Buffer.from(bytes, "latin1"), name)).rejects.toMatchObject({ code: "data", got });
});
