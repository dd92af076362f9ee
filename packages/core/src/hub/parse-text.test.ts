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

it("refuses an integer that would be rounded, with its line, and accepts approximate numbers and strings of digits", async () => {
  const read = (text: string) => textFormats["jsonl"]!(text, "rows.jsonl");
  await expect(read('{"id":1}\n{"id":[9007199254740993]}\n')).rejects.toMatchObject({
    code: "data",
    where: "rows.jsonl:2",
    got: "an integer beyond ±9007199254740991, which would be rounded",
  });
  const whole = '{"id":"9007199254740993","a":1e20,"b":9007199254740991,"c":0.12345678901234567890}';
  expect(await read(whole)).toHaveLength(1);
});
