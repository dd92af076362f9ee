import { execFile } from "node:child_process";
import { truncate, writeFile, appendFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { PeriodicEvalError } from "@periodic-eval/core";
import { fakeTokenizer } from "@periodic-eval/testing";
import fc from "fast-check";
import { parquetMetadata } from "hyparquet";
import { parquetWriteBuffer, type ParquetWriteOptions } from "hyparquet-writer";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";
import { isBadRow } from "./bad-row.ts";
import { loadDataset } from "./dataset.ts";
import { checkSource, readRows, type ReadRowsOptions } from "./read-rows.ts";
import { chatsByCodec } from "./chats.test-data.ts";
import { threeRowsOfParquet } from "./three-rows.test-data.ts";

async function fileOf(content: string | Uint8Array, name = "rows.jsonl"): Promise<string> {
  const path = join(await temporaryFolder(), name);
  await writeFile(path, content);
  return path;
}

/** Returns values by line or row, and reasons for bad rows. */
async function read(path: string, options?: ReadRowsOptions) {
  const found: Record<string, unknown> = {};
  for await (const row of readRows(path, options)) {
    found[row.where.slice(path.length + 1)] = isBadRow(row) ? `${row.reason}: ${row.got}` : row.value;
  }
  return found;
}

async function failure(path: string): Promise<string> {
  const error: unknown = await read(path).catch((thrown: unknown) => thrown);
  expect(PeriodicEvalError.is(error, "data")).toBe(true);
  return (error as Error).message.split(path)[1]!;
}

describe("readRows of JSON Lines", () => {
  it("ends lines only at line feeds, with a byte-order mark, Windows line ends and blank lines", async () => {
    const separators = "a\u2028b\u2029c\u0085d";
    const path = await fileOf(`\uFEFF{"text":"1"}\r\n\r\n  \n{"text":"${separators}"}\n{"text":"3"}`);
    expect(await read(path)).toEqual({ 1: { text: "1" }, 4: { text: separators }, 5: { text: "3" } });
    expect(await read(await fileOf("\uFEFF"))).toEqual({});
    expect(await read(await fileOf(""))).toEqual({});
  });

  it("reports bytes that are not UTF-8, lines that are not JSON, and repeated keys", async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"text":"'),
      Buffer.of(0xc3, 0x28),
      Buffer.from('"}\n{"text":"\u{1F600}"}\n{"text":\n\u0000\n'),
    ]);
    expect(await read(await fileOf(bytes))).toEqual({
      1: "invalid_text: bytes that are not UTF-8 (0xc3 at byte 10)",
      2: { text: "\u{1F600}" },
      3: 'not_json: {"text":',
      4: "not_json: \u0000",
    });
    expect(await read(await fileOf('{"text":"a","text":"b"}\n{"text":"c"}'))).toEqual({
      1: 'repeated_key: "text" twice in one object',
      2: { text: "c" },
    });
    // A UTF-16 file, as Windows editors write it.
    expect(Object.values(await read(await fileOf(Buffer.from('\uFEFF{"text":"1"}\n', "utf16le"))))).toEqual([
      "invalid_text: bytes that are not UTF-8 (0xff at byte 1)",
      "not_json: \u0000",
    ]);
  });

  it("reports a line that is too long, and continues after it", async () => {
    // {"text":"…"} adds 11 bytes to the text.
    const row = (length: number) => JSON.stringify({ text: "x".repeat(length) });
    const path = await fileOf([row(9), row(10), row(200_000), row(1), row(10)].join("\n"));
    expect(await read(path, { maxLineBytes: 20 })).toEqual({
      1: { text: "x".repeat(9) },
      2: "line_too_long: 21 bytes; the maximum is 20",
      3: "line_too_long: 200011 bytes; the maximum is 20",
      4: { text: "x" },
      5: "line_too_long: 21 bytes; the maximum is 20",
    });
  });

  it("needs no memory for a line of 512 MiB", async () => {
    const path = await fileOf("");
    // A sparse file, which takes no disk space either.
    await truncate(path, 2 ** 29);
    await appendFile(path, '\n{"text":"behind"}');
    const script = `
      import { readRows } from ${JSON.stringify(new URL("read-rows.ts", import.meta.url).href)};
      const before = process.resourceUsage().maxRSS;
      const rows = [];
      for await (const row of readRows(${JSON.stringify(path)})) rows.push(row.reason ?? row.value.text);
      console.log(JSON.stringify({ rows, megabytes: (process.resourceUsage().maxRSS - before) / 1024 }));`;
    const flags = ["--max-old-space-size=64", "--import", "tsx", "-C", "@periodic-eval/source"];
    const cwd = fileURLToPath(new URL("../../../..", import.meta.url));
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...flags, "--input-type=module", "-e", script],
      { cwd },
    );
    const { rows, megabytes } = JSON.parse(stdout) as { rows: string[]; megabytes: number };
    expect(rows).toEqual(["line_too_long", "behind"]);
    // Up to 16 MiB of a line are kept until it proves too long; memory is released some time after.
    expect(megabytes).toBeLessThan(200);
  });

  it("finds every line of any length, wherever the file's chunks end", async () => {
    const text = fc.string({ unit: "binary", maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 8 }), fc.nat(70_000), async (texts, first) => {
        const rows = ["x".repeat(first), ...texts].map((text) => ({ text }));
        const path = await fileOf(rows.map((row) => JSON.stringify(row)).join("\n"));
        expect(Object.values(await read(path))).toEqual(rows);
      }),
      { numRuns: 30 },
    );
  });
});

describe("readRows of Parquet", () => {
  it("reads lists of structs, and reports bad rows by row number", async () => {
    const path = await fileOf(threeRowsOfParquet, "rows.PARQUET");
    const { rows, badRows, warnings } = await loadDataset(path, fakeTokenizer(), {
      maxLength: 100,
      onBadRow: "drop",
    });
    expect(rows.map(({ where }) => where)).toEqual([`${path}:row 1`, `${path}:row 3`]);
    expect(String.fromCharCode(...rows[1]!.ids.filter((id) => id < 256))).toBe("hoya");
    expect(badRows).toMatchObject([{ where: `${path}:row 2`, reason: "no_assistant_turn" }]);
    expect(badRows[0]!.got).toContain("only user, alien");
    expect(warnings).toEqual(["unused columns: id"]);
  });

  const columnData = [{ name: "text", data: ["a", "b", "c", "d", "e"], type: "STRING" as const }];
  const parquet = (options: Partial<ParquetWriteOptions> = {}) =>
    new Uint8Array(parquetWriteBuffer({ columnData, ...options }));

  it("reads one row group after the other", async () => {
    const bytes = parquet({ rowGroupSize: 2 });
    const path = await fileOf(bytes, "rows.parquet");
    expect(Object.keys(await read(path))).toEqual(["row 1", "row 2", "row 3", "row 4", "row 5"]);
    // Damage in a later group shows when that group is read.
    const at = Number(parquetMetadata(bytes.buffer).row_groups[2]!.columns[0]!.meta_data!.data_page_offset);
    const seen: unknown[] = [];
    await writeFile(path, bytes.fill(255, at, at + 8));
    const reading = (async () => {
      for await (const row of readRows(path)) if (!isBadRow(row)) seen.push(row.value);
    })();
    await expect(reading).rejects.toMatchObject({ code: "data", where: path });
    expect(seen).toEqual(["a", "b", "c", "d"].map((text) => ({ text })));
  });

  it.each(["BROTLI", "GZIP", "SNAPPY", "UNCOMPRESSED"] as const)("reads %s", async (codec) => {
    const compressors = { BROTLI: brotliCompressSync, GZIP: gzipSync };
    const path = await fileOf(parquet({ codec, compressors }), "rows.parquet");
    expect(Object.values(await read(path))).toEqual(["a", "b", "c", "d", "e"].map((text) => ({ text })));
  });

  it.each(["zstd", "lz4"] as const)("reads %s, with the integers of a row in JSON Lines", async (codec) => {
    const path = await fileOf(chatsByCodec[codec], "rows.parquet");
    const chat = (hi: string, hello: string, turns: readonly unknown[], id: unknown) => ({
      messages: [
        { role: "user", content: hi, turn: turns[0] },
        { role: "assistant", content: hello, turn: turns[1] },
      ],
      id,
    });
    expect(await read(path)).toEqual({
      "row 1": chat("Hi".repeat(20), "Hello ".repeat(20), [0, 2 ** 53 - 1], 2n ** 60n + 1n),
      "row 2": chat("Hi", "Hello", [2n ** 53n, 3], 2),
    });
    const { rows, badRows } = await loadDataset(path, fakeTokenizer(), { maxLength: 1000, onBadRow: "drop" });
    expect(rows).toHaveLength(2);
    expect(badRows).toEqual([]);
  });

  it("throws for files that are not Parquet", async () => {
    expect(await failure(await fileOf("", "rows.parquet"))).toMatch(/^: got .*, expected a Parquet file/);
    expect(await failure(await fileOf('{"text":"a"}', "rows.parquet"))).toMatch(/^: got .*parquet/);
    const cut = await fileOf(threeRowsOfParquet.subarray(100), "rows.parquet");
    expect(await failure(cut)).toMatch(/^: got /);
  });
});

it("throws for a missing file and for a folder, both when checked and when read", async () => {
  const folder = await temporaryFolder();
  expect(() => checkSource("SFTTrainer options", "dataset", folder)).toThrow(
    expect.objectContaining({
      where: folder,
      got: "EISDIR",
      expected: "a readable JSON Lines or Parquet file",
    }),
  );
  expect(() => checkSource("SFTTrainer options", "dataset", 3)).toThrow(
    expect.objectContaining({
      where: "SFTTrainer options.dataset",
      got: "3",
      expected: "the path of a JSON Lines or Parquet file, hf:owner/dataset, or an array of rows",
    }),
  );
  expect(() => checkSource("SFTTrainer options", "dataset", join(folder, "none.jsonl"))).toThrow(
    expect.objectContaining({ got: "a path which does not exist" }),
  );
  expect(await failure(folder)).toContain(": got EISDIR");
  expect(await failure(join(folder, "none.parquet"))).toContain(": got a path which does not exist");
});
