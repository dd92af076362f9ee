import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, describe, expect, it } from "vitest";
import { readDocuments } from "./read-documents.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

async function file(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}
const read = async (name: string, content: string | Uint8Array) =>
  readDocuments(await file(name, content), "task.data");

describe("readDocuments", () => {
  it("reads JSON Lines, with the line number of each row and the file's hash", async () => {
    const text = '\uFEFF{"q":"a\u2028b"}\r\n\n{"q":2}\n';
    const { rows, sha256, provenance } = await read("a.jsonl", text);
    expect(rows).toEqual([
      { place: join(folder, "a.jsonl:1"), row: { q: "a\u2028b" } },
      { place: join(folder, "a.jsonl:3"), row: { q: 2 } },
    ]);
    expect(sha256).toBe(createHash("sha256").update(text).digest("hex"));
    expect(provenance).toEqual({ sha256, rows: 2 });
  });

  it("reads a JSON array", async () => {
    const { rows } = await read("a.json", '[{"q":1},{"q":[2]}]');
    expect(rows.map(({ row }) => row)).toEqual([{ q: 1 }, { q: [2] }]);
    expect(rows[1]!.place).toBe(join(folder, "a.json[1]"));
  });

  it("reads CSV with quotes and line breaks inside them", async () => {
    const { rows } = await read("a.csv", '\uFEFFq,a\n"x, ""y""\nz",1\n\n" 2",\n');
    // The place of a record is the line on which it ends.
    expect(rows).toEqual([
      { place: join(folder, "a.csv:3"), row: { q: 'x, "y"\nz', a: "1" } },
      { place: join(folder, "a.csv:5"), row: { q: " 2", a: "" } },
    ]);
  });

  it("reads Parquet", async () => {
    const bytes = parquetWriteBuffer({
      columnData: [
        { name: "question", data: ["a", "b"], type: "STRING" },
        { name: "label", data: [1n, 3n], type: "INT64" },
        { name: "choices", data: [["x", "y"], []], type: "JSON" },
      ],
    });
    const { rows } = await read("a.parquet", new Uint8Array(bytes));
    expect(rows).toEqual([
      { place: join(folder, "a.parquet row 0"), row: { question: "a", label: 1, choices: ["x", "y"] } },
      { place: join(folder, "a.parquet row 1"), row: { question: "b", label: 3, choices: [] } },
    ]);
  });

  const refused: readonly (readonly [string, string, string | Uint8Array, string])[] = [
    ["a line that is not JSON", "b.jsonl", '{"a":1}\n{"a"}\n', "b.jsonl:2: got invalid JSON"],
    ["a line that is not an object", "b.jsonl", '{"a":1}\n[1]\n', "b.jsonl:2: got [1], expected an object"],
    ["a repeated key", "b.jsonl", '{"a":1}\n{"a":1,"a":2}', 'b.jsonl:2: got the key "a" twice'],
    ["a repeated key in an array", "b.json", '[{"a":{"b":1,"b":1}}]', 'b.json: got the key "b" twice'],
    [
      "rows inside of an object",
      "b.json",
      '{"data":[{"a":1}]}',
      'b.json: got one object whose "data" holds 1',
    ],
    ["an entry that is not an object", "b.json", '[{"a":1},null]', "b.json[1]: got null"],
    ["a short CSV record", "b.csv", "a,b\n1,2\n3\n", "b.csv:3: got Invalid Record Length"],
    ["an open quote", "b.csv", 'a,b\n"1,2\n', "b.csv:2: got Quote Not Closed"],
    ["a repeated column", "b.csv", "a,a\n1,2\n", 'b.csv:1: got the column "a" twice'],
    [
      "a repeated column among 10,000",
      "b.csv",
      `${Array.from({ length: 10_000 }, (_, i) => i).join()},7\n`,
      'b.csv:1: got the column "7" twice',
    ],
    ["a file without rows", "b.csv", "a,b\n", "b.csv: got no row"],
    ["bytes that are not UTF-8", "b.jsonl", Uint8Array.of(0xff), "b.jsonl:1: got bytes that are not UTF-8"],
    [
      "a line in Latin-1",
      "b.jsonl",
      Buffer.from('{"a":"\u00e9"}\n{"a":"\xe9"}'.replace("\u00e9", "e"), "latin1"),
      "b.jsonl:2: got bytes that are not UTF-8",
    ],
    ["an invalid Parquet file", "b.parquet", "PAR", "b.parquet: got "],
    ["an unsupported file type", "b.txt", "x", "task.data: got "],
  ];
  it.each(refused)("rejects %s", async (_, name, content, message) => {
    await expect(read(name, content)).rejects.toThrow(message);
  });

  it("names the option in the error for a missing file", async () => {
    await expect(readDocuments(join(folder, "none.csv"), "task.data")).rejects.toThrow(
      /task\.data: got ".*none\.csv", which does not exist/,
    );
  });

  it("reads Parquet integers beyond 2^53 as their digits, and NaN as null", async () => {
    const bytes = parquetWriteBuffer({
      columnData: [
        { name: "n", data: [1n, 2n ** 60n + 1n], type: "INT64" },
        { name: "score", data: [Number.NaN, 0.5], type: "DOUBLE" },
      ],
    });
    const { rows } = await read("c.parquet", new Uint8Array(bytes));
    expect(rows.map(({ row }) => row)).toEqual([
      { n: 1, score: null },
      { n: "1152921504606846977", score: 0.5 },
    ]);
  });

  it("reads gzip files of every text format", async () => {
    for (const [name, text] of [
      ["a.jsonl.gz", '{"q":"1"}\n'],
      ["a.json.gz", '[{"q":"1"}]'],
      ["a.csv.gz", "q\n1\n"],
    ] as const) {
      const { rows } = await read(name, gzipSync(text));
      expect(
        rows.map(({ row }) => row),
        name,
      ).toEqual([{ q: "1" }]);
    }
    await expect(read("b.jsonl.gz", gzipSync('{"q":1}').subarray(0, -6))).rejects.toThrow(
      /b\.jsonl\.gz: got gzip data that is damaged or cut off \(unexpected end of file\)/,
    );
  });
});

const data = fileURLToPath(new URL("../../../../../shared/data", import.meta.url));
describe.runIf(existsSync(data))("real files of ../shared/data", () => {
  it.each([
    ["mmlu/test/anatomy_test.csv", 135],
    ["gsm8k/test.jsonl", 1319],
    ["truthfulqa/TruthfulQA.csv", 817],
    ["ifeval/input_data.jsonl", 541],
  ])("%s", async (name, count) => {
    expect((await readDocuments(join(data, name), "x")).rows).toHaveLength(count);
  });
});
