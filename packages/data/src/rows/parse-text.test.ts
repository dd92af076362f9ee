import { expect, it } from "vitest";
import { textFormats, strictJson } from "./parse-text.ts";

it("keeps rows with long integers in fields that are not ids, rounded or not", async () => {
  const row = '{"id":"9007199254740993","tweet":1234567890123456789,"hash":18446744073709551616,"mass":1e20}';
  expect(await textFormats["jsonl"]!(row, "rows.jsonl")).toMatchObject([
    { row: { tweet: 1234567890123456800, hash: 2 ** 64, mass: 1e20 } },
  ]);
});

it.each([
  ["an array in a file of lines", "jsonl", ' [{"q":1},\n{"q":2}]', ["rows[0]", "rows[1]"]],
  ["lines in a .json file", "json", '{"q":1}\r\n\r\n{"q":2}', ["rows:1", "rows:3"]],
])("reads %s, as datasets does", async (_, format, text, places) => {
  expect(await textFormats[format]!(text, "rows")).toEqual(
    places.map((place, at) => ({ place, row: { q: at + 1 } })),
  );
});

it("reads one object over several lines", async () => {
  expect(await textFormats["json"]!('{\n"q":1}', "rows.json")).toEqual([
    { place: "rows.json", row: { q: 1 } },
  ]);
});

it("reads NaN and infinite numbers, which Python writes for missing values, as null", async () => {
  const row = '{"q":"NaN","score":NaN,"list":[-Infinity,1]}';
  expect(await textFormats["jsonl"]!(row, "rows.jsonl")).toMatchObject([
    { row: { q: "NaN", score: null, list: [null, 1] } },
  ]);
});

it.each(['{"version":1,"data":[{"q":1},{"q":2}]}', '{"version":1,\n"data":[{"q":1},{"q":2}]}'])(
  "names the remedy for rows inside of an object: %s",
  async (text) => {
    await expect(textFormats["json"]!(text, "rows.json")).rejects.toMatchObject({
      code: "data",
      where: "rows.json",
      got: 'one object whose "data" holds 2 objects',
      fix: 'Write the array alone into a file: jq .data rows.json. In Python: json.load(file)["data"].',
    });
  },
);

it("returns the value of JSON", () => {
  expect(strictJson('{"a": [1, null]}')).toEqual({ value: { a: [1, null] }, fault: null });
});

it.each([
  ["other text", "{a: 1}", "invalid JSON (", "JSON"],
  ["an empty string", " \n", "an empty text", "JSON"],
  ["a key twice", '[{"a": 1, "\\u0061": 2}]', 'the key "a" twice in one object', "keys that differ"],
])("refuses %s", (_, text, got, expected) => {
  expect(strictJson(text).fault).toMatchObject({ got: expect.stringContaining(got), expected });
});
