import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, describe, expect, it } from "vitest";
import { namedStream } from "@periodic-eval/core/random";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { decodeParquet } from "./parquet-process.ts";
import { readParquet } from "../sources/read-source.ts";

const folder = temporaryFolder(afterAll);
let written = 0;
async function fileOf(bytes: Uint8Array): Promise<string> {
  const path = join(folder, `${written++}.parquet`);
  await writeFile(path, bytes);
  return path;
}

/** The first column's definition levels begin at byte 25, its text at byte 31. */
const parquet = (): Buffer =>
  Buffer.from(
    parquetWriteBuffer({
      codec: "UNCOMPRESSED",
      columnData: [
        { name: "text", data: ["a", "b", null, "d", "b"], type: "STRING" },
        { name: "n", data: [1, 2, 3, 4, 5], type: "INT32" },
      ],
    }),
  );
const changed = (at: number, ...bytes: readonly number[]): Promise<string> => {
  const file = parquet();
  file.set(bytes, at);
  return fileOf(file);
};
async function decode(path: string, limits = { seconds: 5, mebibytes: 200 }) {
  const values: unknown[] = [];
  for await (const { value } of decodeParquet(path, "rows.parquet", { limits })) values.push(value);
  return values;
}

it.skipIf(process.platform === "win32")("decodes a file during a Ctrl-C in the terminal", async () => {
  // In a process group of its own, because the signal goes to the whole group. `npm test` builds first.
  const program = `
    import { decodeParquet } from "${new URL("../../dist/rows/parquet-process.js", import.meta.url).href}";
    process.on("SIGINT", () => undefined);
    const rows = decodeParquet(${JSON.stringify(await fileOf(parquet()))}, "rows.parquet", { limits: { seconds: 60, mebibytes: 400 } });
    const first = rows.next();
    process.kill(0, "SIGINT");
    console.log(JSON.stringify((await first).value.value));
    await rows.return();
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  expect(JSON.parse(await text(child.stdout))).toEqual({ text: "a", n: 1 });
});

describe("decodeParquet of a damaged file", () => {
  it("ends a decoder that loops for ever", async () => {
    // One byte of the first page's header.
    await expect(decode(await changed(20, 153), { seconds: 0.1, mebibytes: 128 })).rejects.toMatchObject({
      code: "data",
      where: "rows.parquet",
      got: "a file that is not decoded after 0.1 s",
    });
  });

  it("ends a decoder that fills the memory", async () => {
    // A run of 2³¹ - 1 equal values.
    const path = await changed(25, 0xfe, 0xff, 0xff, 0xff, 0x0f);
    await expect(decode(path, { seconds: 60, mebibytes: 100 })).rejects.toMatchObject({
      code: "data",
      where: "rows.parquet",
      got: "a file that cannot be decoded in 100 MiB of memory",
    });
  });

  it.each([
    ["a", "a"],
    ["a", "__proto__"],
  ])("refuses the columns %s and %s, of which a row would lose one", async (...names) => {
    const columnData = names.map((name) => ({ name, data: ["x"], type: "STRING" as const }));
    await expect(
      decode(await fileOf(new Uint8Array(parquetWriteBuffer({ columnData })))),
    ).rejects.toMatchObject({
      got: `the column "${names[1]}" twice, or a name that no object can hold`,
    });
  });

  it("refuses a column with fewer values than rows", async () => {
    const file = parquet();
    // The second column's page header has twice the number of values.
    file[file.indexOf(Buffer.from("5c150a1500", "hex")) + 2] = 8;
    await expect(decode(await fileOf(file))).rejects.toMatchObject({
      code: "data",
      got: 'the column "n" with 4 values in a row group of 5 rows',
    });
  });

  it("refuses an index that the dictionary does not have", async () => {
    const data = Array.from({ length: 24 }, (_, i) => ["a", "b", "c"][i % 3]!);
    const file = Buffer.from(
      parquetWriteBuffer({ codec: "UNCOMPRESSED", columnData: [{ name: "text", data, type: "STRING" }] }),
    );
    // Indices of two bits: 0, 1, 2, 0 become 3, 1, 2, 0.
    file[file.indexOf(Buffer.from([2, 7, 0x24])) + 2] = 0x27;
    await expect(decode(await fileOf(file))).rejects.toMatchObject({
      got: 'the column "text" with values that its pages or its dictionary lack',
    });
  });

  // JSON of 2,000 levels overflowed the stack where this process received it, outside of any promise.
  it("refuses JSON that is nested too deep for its readers", async () => {
    const data = [JSON.parse("[".repeat(2000) + "]".repeat(2000)) as unknown];
    const bytes = parquetWriteBuffer({ columnData: [{ name: "json", data, type: "JSON" }] });
    await expect(decode(await fileOf(new Uint8Array(bytes)))).rejects.toMatchObject({
      code: "data",
      got: "values nested deeper than 400 levels",
    });
  });

  it("refuses JSON with half of a surrogate pair", async () => {
    const bytes = parquetWriteBuffer({ columnData: [{ name: "json", data: ["\ud800"], type: "JSON" }] });
    await expect(decode(await fileOf(new Uint8Array(bytes)))).rejects.toMatchObject({
      got: "text with half of a surrogate pair",
    });
  });

  it("names the file where the decoder throws", async () => {
    await expect(decode(await changed(4, 0xff))).rejects.toMatchObject({
      code: "data",
      where: "rows.parquet",
    });
  });

  const flips = 5;
  it(`returns rows or a data error for each of ${flips} random damages`, async () => {
    const random = namedStream("damages of Parquet");
    for (let i = 0; i < flips; i++) {
      const file = parquet();
      file[Math.floor(random() * file.length)] = Math.floor(random() * 256);
      await decode(await fileOf(file)).catch((error: unknown) =>
        expect(error).toMatchObject({ code: "data" }),
      );
    }
  });
});

it("refuses text that is not UTF-8, by file, row, column and byte", async () => {
  await expect(readParquet(await changed(41, 0xff), "rows.parquet")).rejects.toMatchObject({
    code: "data",
    where: "rows.parquet row 3",
    got: '"text" with bytes that are not UTF-8 (0xff at byte 1)',
  });
});

it("reads text that the file does not mark as text", async () => {
  const bytes = parquetWriteBuffer({
    schema: [
      { name: "root", num_children: 1 },
      { name: "text", type: "BYTE_ARRAY", repetition_type: "REQUIRED" },
    ],
    columnData: [{ name: "text", data: ["naïve"] }],
  });
  expect((await readParquet(await fileOf(new Uint8Array(bytes)), "rows.parquet"))[0]!.row).toEqual({
    text: "naïve",
  });
});

describe("decodeParquet of a map", () => {
  const written = Buffer.from(
    parquetWriteBuffer({
      codec: "UNCOMPRESSED",
      schema: [
        { name: "root", num_children: 1 },
        { name: "map", repetition_type: "REQUIRED", num_children: 1, converted_type: "MAP" },
        { name: "key_value", repetition_type: "REPEATED", num_children: 2 },
        { name: "key", type: "BYTE_ARRAY", repetition_type: "REQUIRED", converted_type: "UTF8" },
        { name: "value", type: "INT32", repetition_type: "REQUIRED" },
      ],
      columnData: [{ name: "map", data: [{ __key____: 1, b: 2 }] }],
    }),
  );
  const withKey = (...bytes: readonly number[]) => {
    const file = Buffer.from(written);
    file.set(bytes, file.indexOf("__key____"));
    return fileOf(file);
  };

  it("refuses a key that is not UTF-8", async () => {
    await expect(decode(await withKey(0xff))).rejects.toMatchObject({
      got: "a key of a map that is not UTF-8",
    });
  });
});
