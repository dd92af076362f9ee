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
