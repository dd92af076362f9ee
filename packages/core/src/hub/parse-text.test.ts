import { expect, it } from "vitest";
import { textFormats } from "./parse-text.ts";

it.each([
  ["an object instead of an array", `{"a":${"[".repeat(10_000)}${"]".repeat(10_000)}}`],
  ["an array", `[{"a":${"[".repeat(10_000)}${"]".repeat(10_000)}}]`],
])("refuses %s that nests too deep, with the name of the file", async (_, text) => {
  await expect(textFormats["json"]!(text, "rows.json")).rejects.toMatchObject({
    code: "data",
    where: "rows.json",
    got: "values nested deeper than 400 levels",
  });
});

it("keeps rows with long integers in fields that are not ids, rounded or not", async () => {
  const row = '{"id":"9007199254740993","tweet":1234567890123456789,"hash":18446744073709551616,"mass":1e20}';
  expect(await textFormats["jsonl"]!(row, "rows.jsonl")).toMatchObject([
    { row: { tweet: 1234567890123456800, hash: 2 ** 64, mass: 1e20 } },
  ]);
});
